"""Batch norms that synchronise among ranks: the place that makes them so. Which layers need it, only a person knows."""

from __future__ import annotations

import ast

from ...analyzer.findings import Related
from .base import Case, Confirmation, Fixer
from .outline import last_name, outline
from .resolve import Resolver, Value
from .scene import scene, searcher

_SLUG = "sync-batchnorm-chatter"
_ADVICE = (
    "synchronise only where a device's own batch is small (the head of a detector), exchange less often, or use a norm "
    "without a batch (group norm)"
)


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    found = _conversions(view.resolver)
    if not found:
        return None
    places = [call.outline.location(call.node, case.location) for call in found]
    others = tuple(Related("layers are made to synchronise here too", place) for place in places[1:])
    return Confirmation(places[0], (), others, _ADVICE)


def _conversions(resolver: Resolver) -> list[Value]:
    """Calls that convert a model's norms, else those that make such a layer: torch's or one called like it."""
    converted = resolver.calls_of("convert_sync_batchnorm")
    if converted:
        return converted
    made: list[Value] = []
    for path in resolver.workspace.paths():
        text = resolver.workspace.text(path)
        if text is None or "Sync" not in text or (file := outline(resolver.workspace.file(path))) is None:
            continue
        calls = (node for node in file.nodes if isinstance(node, ast.Call))
        made += [Value(file, call) for call in calls if "SyncB" in last_name(call.func)]
    return made


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("SyncBatchNorm", "SyncBN", "convert_sync_batchnorm")))
