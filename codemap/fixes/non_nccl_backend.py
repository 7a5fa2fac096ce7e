"""A process group that exchanges the devices' tensors through the host: let it use the devices' own backend."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .edits import Patch
from .resolve import Resolver, Value
from .scene import scene, searcher
from .settings import argument, texts
from .versions import is_older

_SLUG = "non-nccl-backend"
_SLOW = frozenset({"gloo", "mpi"})
_BOTH_SINCE = (2, 0)
"""From here on one group can have a backend for tensors on the host and one for those on devices."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    found = next(_slow_groups(view.resolver), None)
    if found is None:
        return None
    call, backend = found
    is_old = is_older(case.device.torch_version, _BOTH_SINCE)
    wanted = "nccl" if is_old else "cpu:gloo,cuda:nccl"
    patch = Patch(backend.outline)
    quote = patch.outline.segment(backend.node)[-1]
    patch.replace(backend.node, f"{quote}{wanted}{quote}")
    title = f'Exchange on the device (backend="{wanted}")'
    # NCCL refuses two ranks on one device, and on its own it exchanges nothing that lies on the host.
    fix = Fix(_SLUG, title, Safety.UNSAFE, patch.edits())
    return Confirmation(call.outline.location(call.node, case.location), (fix,))


def _slow_groups(resolver: Resolver) -> Iterator[tuple[Value, Value]]:
    """Each call that makes a process group of a slow backend, and the text that names it."""
    for call in resolver.calls_of("init_process_group"):
        given = argument(resolver, call, "backend", 0)
        if given.value is None:
            continue
        named = texts(resolver, given.value)
        slow = [one for one in named if isinstance(one.node, ast.Constant) and one.node.value in _SLOW]
        if len(slow) == len(named) == 1:
            yield call, slow[0]


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("init_process_group",)),
    cure=Cure(re.compile(r"nccl"), is_elsewhere=True),
)
