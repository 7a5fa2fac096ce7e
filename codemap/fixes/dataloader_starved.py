"""A `DataLoader` with too few workers: give it more, and say where its samples are made."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, DeviceFacts, Fixer
from .edits import Patch
from .loaders import dataset_class, loader_argument, loaders_at
from .resolve import Definition, Resolver, Value
from .scene import scene, searcher
from .settings import constants

_SLUG = "dataloader-starved"
_GPU_WORKERS = 8
_CPU_WORKERS = 2
"""On a CPU the workers take cores from the model."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for loader in loaders_at(view):
        workers = _workers(view.resolver, loader)
        if workers is not None and _count(workers) < _enough(case.device):
            return _answer(view.resolver, loader, workers, case)
    return None


def _workers(resolver: Resolver, loader: Value) -> Value | None:
    """The number of workers where the source spells it out, if there are any."""
    given = loader_argument(resolver, loader, "num_workers").value
    literals = constants(resolver, given) if given is not None else []
    numbers = [one for one in literals if isinstance(one.node, ast.Constant) and isinstance(one.node.value, int)]
    return numbers[0] if len(numbers) == 1 and _count(numbers[0]) > 0 else None


def _count(workers: Value) -> int:
    assert isinstance(workers.node, ast.Constant) and isinstance(workers.node.value, int)
    return workers.node.value


def _answer(resolver: Resolver, loader: Value, workers: Value, case: Case) -> Confirmation:
    place = loader.outline.location(loader.node, case.location)
    made = _sample_maker(resolver, loader)
    related = (Related("samples are made here", made.outline.location(made.node, case.location)),) if made else ()
    more = _enough(case.device)
    patch = Patch(workers.outline)
    patch.replace(workers.node, str(more))
    fix = Fix(_SLUG, f"Load in {more} worker processes", Safety.SAFE, patch.edits())
    return Confirmation(place, (fix,), related)


def _enough(device: DeviceFacts) -> int:
    """Workers from which on more of them are no obvious remedy."""
    return _CPU_WORKERS if device.is_cpu else _GPU_WORKERS


def _sample_maker(resolver: Resolver, loader: Value) -> Definition | None:
    """The method of the loader's dataset that makes a sample."""
    dataset = dataset_class(resolver, loader)
    if dataset is None:
        return None
    return resolver.method(dataset, "__getitem__") or resolver.method(dataset, "__iter__")


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("DataLoader",)),
    cure=Cure(re.compile(r"\b(num_workers|default)\s*=\s*8\b"), is_elsewhere=True),
)
