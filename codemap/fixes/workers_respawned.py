"""A `DataLoader` whose workers end with each epoch: keep them."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .calls import edit_call
from .edits import Patch
from .loaders import dataset_class, loader_argument, loaders_at
from .resolve import Resolver, Value
from .scene import scene, searcher
from .settings import constants

_SLUG = "workers-respawned"
_EPOCH = re.compile(r"\b(set_epoch|epoch\s*=|\.epoch\b)")
"""What a dataset that changes from epoch to epoch holds: its workers' copies would not see the change."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    faulty = [loader for loader in loaders_at(view) if _ends_workers(view.resolver, loader)]
    if not faulty:
        return None
    loader = faulty[0]
    place = loader.outline.location(loader.node, case.location)
    given = loader_argument(view.resolver, loader, "persistent_workers")
    if given.is_unknown:
        return Confirmation(
            place, message="persistent_workers may be passed by unpacking that the source does not spell out"
        )
    patch = Patch(loader.outline)
    if given.value is not None and not _is_keyword_of(loader, given.value):
        literal = [one for one in constants(view.resolver, given.value) if one.outline is loader.outline]
        if len(literal) != 1:
            return Confirmation(place, message="persistent_workers comes from a setting elsewhere")
        patch.replace(literal[0].node, "True")
    else:
        column = loader.outline.position(loader.outline.span(loader.node)[0])[1] - 1
        added = {"persistent_workers": _kept_if_any(view.resolver, loader)}
        text = edit_call(loader.outline.segment(loader.node), added, column=column)
        patch.replace(loader.node, text)
    safety = Safety.UNSAFE if _changes_by_epoch(view.resolver, loader) else Safety.SAFE
    fix = Fix(_SLUG, "Keep the workers (persistent_workers)", safety, patch.edits())
    return Confirmation(place, (fix,))


def _ends_workers(resolver: Resolver, loader: Value) -> bool:
    """Whether a loader has workers and does not keep them, as far as its arguments tell."""
    workers = loader_argument(resolver, loader, "num_workers")
    if workers.value is None:
        return workers.is_unknown
    literals = [one.node.value for one in constants(resolver, workers.value) if isinstance(one.node, ast.Constant)]
    if literals and all(value in (0, None) for value in literals):
        return False
    kept = loader_argument(resolver, loader, "persistent_workers")
    if kept.value is None:
        return True
    values = [one.node.value for one in constants(resolver, kept.value) if isinstance(one.node, ast.Constant)]
    return bool(values) and not any(values)


def _kept_if_any(resolver: Resolver, loader: Value) -> str:
    """What to pass: True is an error without workers, of which a setting may ask for none."""
    workers = loader_argument(resolver, loader, "num_workers").value
    is_here = workers is not None and workers.node in (
        *getattr(loader.node, "args", ()),
        *(keyword.value for keyword in getattr(loader.node, "keywords", ())),
    )
    if workers is None or not is_here or not isinstance(workers.node, ast.Name | ast.Attribute):
        return "True"
    return f"{loader.outline.segment(workers.node)} > 0"


def _is_keyword_of(loader: Value, given: Value) -> bool:
    assert isinstance(loader.node, ast.Call)
    return any(keyword.value is given.node and isinstance(given.node, ast.Constant) for keyword in loader.node.keywords)


def _changes_by_epoch(resolver: Resolver, loader: Value) -> bool:
    dataset = dataset_class(resolver, loader)
    return dataset is not None and _EPOCH.search(dataset.outline.segment(dataset.node)) is not None


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("DataLoader",)),
    cure=Cure(re.compile(r"\bpersistent_workers\s*=\s*(?!False)\w"), is_elsewhere=True),
)
