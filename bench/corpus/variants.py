"""The same trace with less recorded in it, as people's traces often are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from torchtraceap.analyzer.timeline.columns import is_among
from torchtraceap.analyzer.trace.model import DEVICE_CATEGORIES, NONE, BoolArray, Category, Trace

FULL = "full"


def without_stacks(trace: Trace) -> Trace:
    """No Python frames."""
    kept = _keep(trace, trace.cat != Category.PYTHON_FUNCTION)
    return replace(kept, stack=np.full_like(kept.stack, NONE), info=replace(trace.info, with_stack=False))


def without_shapes(trace: Trace) -> Trace:
    """No inputs of operators."""
    return replace(trace, inputs=np.full_like(trace.inputs, NONE), info=replace(trace.info, record_shapes=False))


def device_only(trace: Trace) -> Trace:
    """Nothing of the host."""
    kept = without_shapes(_keep(trace, is_among(trace.cat, DEVICE_CATEGORIES)))
    info = replace(kept.info, with_stack=False, profile_memory=False)
    arrows = {column: getattr(trace.flows, column)[:0] for column in _ARROWS}
    instants = {field.name: getattr(trace.memory, field.name)[:0] for field in fields(trace.memory)}
    return replace(
        kept, info=info, flows=replace(trace.flows, **arrows), memory=replace(trace.memory, **instants), collectives=()
    )


STRIPPED: dict[str, Callable[[Trace], Trace]] = {
    "no stacks": without_stacks,
    "no shapes": without_shapes,
    "neither": lambda trace: without_shapes(without_stacks(trace)),
    "device only": device_only,
}
_ARROWS = ("kind", "start_ts_ns", "start_thread", "end_ts_ns", "end_thread")


def _keep(trace: Trace, wanted: BoolArray) -> Trace:
    """Only those events."""
    columns = {name: getattr(trace, name)[wanted] for name in _columns(trace)}
    row = np.where(wanted, np.cumsum(wanted) - 1, NONE)
    collectives = tuple(replace(one, row=int(row[one.row])) for one in trace.collectives if wanted[one.row])
    return replace(trace, **columns, collectives=collectives)


def _columns(trace: Trace) -> list[str]:
    return [field.name for field in fields(trace) if isinstance(getattr(trace, field.name), np.ndarray)]
