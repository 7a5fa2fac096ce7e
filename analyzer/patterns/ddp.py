"""What DistributedDataParallel leaves in a trace: its forward ranges, and the operators of its reducer."""

from __future__ import annotations

import re
from math import prod

import numpy as np

from ..timeline.collectives import CollectiveKind, kind_of
from ..timeline.columns import is_among, is_named
from ..timeline.model import Phase, Timeline
from ..timeline.op_inputs import of_each, tensors
from ..timeline.select import outermost, steady
from ..trace.model import NONE, Category, IntArray, OpInputs

FORWARD = "DistributedDataParallel.forward"
COPY_IN = "torch::distributed::reducer::mul_out"
"""Divides a gradient by the number of ranks on its way into the bucket."""
COPY_OUT = "torch.distributed.ddp.reducer::copy_bucket_to_grad"
SEARCH = "torch.distributed.ddp.reducer::search_unused_parameters"
_WRAPPER_FRAME = r"torch/nn/parallel/distributed\.py\(\d+\): "


def ddp_forwards(timeline: Timeline) -> IntArray:
    """The forward calls of wrapped models in the steady steps: ranges on the host, one after the other."""
    trace = timeline.trace
    rows = trace.rows_named((FORWARD,))
    return outermost(
        timeline, steady(timeline, rows[is_among(trace.cat[rows], (Category.USER_ANNOTATION, Category.CPU_OP))])
    )


def operators(timeline: Timeline, *names: str) -> IntArray:
    """Operators of these names in the steady steps, outermost ones."""
    trace = timeline.trace
    rows = trace.rows_named(names)
    return outermost(timeline, steady(timeline, rows[trace.cat[rows] == Category.CPU_OP]))


def wrapper_frames(timeline: Timeline, *functions: str) -> IntArray:
    """Python frames of these functions of DistributedDataParallel in the steady steps, outermost ones."""
    trace = timeline.trace
    pattern = re.compile(_WRAPPER_FRAME + f"({'|'.join(functions)})$")
    frames = steady(timeline, trace.rows(Category.PYTHON_FUNCTION))
    return outermost(timeline, frames[is_named(trace, frames, pattern.search)])


def backward_exchanges(timeline: Timeline) -> IntArray:
    """Operators of the steady steps by which a backward pass asks for an all-reduce: `c10d::allreduce_`."""
    trace = timeline.trace
    names = [
        i
        for i, name in enumerate(trace.names)
        if name.startswith("c10d::") and kind_of(name) == CollectiveKind.ALL_REDUCE
    ]
    if not names:
        return np.empty(0, dtype=np.int64)
    rows = steady(timeline, np.flatnonzero(is_among(trace.name, names) & (trace.cat == Category.CPU_OP)))
    in_backward = (timeline.phase[rows] == Phase.BACKWARD) | (timeline.tree.python[rows] == NONE)
    return outermost(timeline, rows[in_backward])


def forward_before(timeline: Timeline, rows: IntArray, forwards: IntArray) -> IntArray:
    """For each row the index in `forwards` of the last one that began before it; NONE before the first."""
    return np.searchsorted(timeline.trace.ts_ns[forwards], timeline.trace.ts_ns[rows], side="right") - 1


def elements(timeline: Timeline, rows: IntArray) -> IntArray:
    """Elements of the tensors that each operator was given first, by its shapes or by what was recorded of the
    collective in it; 0 where neither was."""
    trace, parent = timeline.trace, timeline.tree.parent
    recorded = {row: one.elements_in for one in trace.collectives for row in (one.row, int(parent[one.row]))}
    shaped = of_each(trace, rows, _first_elements)
    return np.array(
        [size or max(recorded.get(row, 0), 0) for size, row in zip(shaped, rows.tolist(), strict=True)], dtype=np.int64
    )


def _first_elements(inputs: OpInputs) -> int:
    return sum(prod(dims) for argument, dims in tensors(inputs) if argument == 0)
