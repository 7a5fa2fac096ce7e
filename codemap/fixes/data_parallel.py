"""A model wrapped in `nn.DataParallel`: the place, and what to do instead. Starting a process for each device is a
change of the whole script, so there is no edit."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Related
from .base import Case, Confirmation, Cure, Fixer
from .outline import last_name
from .resolve import Value
from .scene import scene, searcher

_SLUG = "data-parallel"
_RECIPE = (
    "run the script once for each device (torchrun), wrap the model in DistributedDataParallel and give the loader a "
    "DistributedSampler"
)


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    calls = [*view.resolver.calls_of("DataParallel"), *view.resolver.calls_of("data_parallel")]
    found = [call for call in calls if _is_torchs(call)]
    if not found:
        return None
    places = [call.outline.location(call.node, case.location) for call in found]
    others = tuple(Related("another model is wrapped so", place) for place in places[1:])
    return Confirmation(places[0], (), others, _RECIPE)


def _is_torchs(call: Value) -> bool:
    assert isinstance(call.node, ast.Call)
    dotted = call.outline.dotted(call.node.func)
    return dotted.startswith("torch.nn.") or (dotted == "" and last_name(call.node.func) == "DataParallel")


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("DataParallel", "data_parallel")),
    cure=Cure(re.compile(r"DistributedDataParallel"), is_elsewhere=True),
)
