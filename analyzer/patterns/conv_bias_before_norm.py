"""conv-bias-before-norm: convolutions add a bias that the batch norm behind them takes away again.

Why it is slow: in training a batch norm subtracts each channel's mean, the bias with it. On a device adding it is a
pass over the whole output, and its gradient a sum over the whole gradient: two kernels for each layer, for nothing.
Trace: within a convolution right before a training batch norm, an `aten::add_` (or a bias kernel of the library), and
in its backward an `aten::sum`.
Edit: these operators go with their kernels.
Gate: the CPU, where oneDNN adds the bias and sums its gradient within the convolution (measured with torch 2.13, six
shapes, forward and backward: no difference beyond noise); inference, where the bias counts; norms of other kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_named
from ..timeline.convolution_calls import ConvShape
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.model import Timeline
from ..timeline.select import (
    backward_of,
    count_per_step,
    events_of,
    in_typical_step,
    inside,
    is_noticeable,
    launched_by,
    outermost,
    steady,
    us_per_step,
)
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .conv_norm import conv_norms
from .occurrences import by_site

_ADDS = ("aten::add_", "aten::add")
_SUMS = ("aten::sum",)
_BIAS_KERNEL = re.compile(r"[bB]ias")


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site of convolutions whose bias is added and summed for nothing."""
    if timeline.is_cpu_only:
        return
    pairs = [pair for pair in conv_norms(timeline) if pair.is_training]
    convs = distinct(np.array([pair.conv for pair in pairs if _may_add(pair.shape)], dtype=np.int64))
    forward_parts = _parts(timeline, [convs[i : i + 1] for i in range(len(convs))], _ADDS)
    adds = np.array([len(added) + len(kernels) > 0 for added, kernels in forward_parts], dtype=np.bool_)
    if not adds.any():
        return
    convs, forward_parts = convs[adds], [part for part, is_one in zip(forward_parts, adds, strict=True) if is_one]
    backward_parts = _parts(timeline, backward_of(timeline, convs), _SUMS)
    occurrences = [
        _occurrence(timeline, int(conv), *added, *summed)
        for conv, added, summed in zip(convs, forward_parts, backward_parts, strict=True)
    ]
    if not is_noticeable(timeline, np.concatenate([one.cost_rows for one in occurrences])):
        return
    for group in by_site(timeline, occurrences):
        anchors = np.array([occurrence.anchor for occurrence in group])
        rows = np.sort(np.concatenate([occurrence.cost_rows for occurrence in group]))
        yield Candidate(
            what="convolutions add a bias that the batch norm behind them takes away",
            remedy="bias=False",
            occurrences=group,
            evidence=(
                Evidence(
                    "convolutions",
                    "convolutions with a bias before a batch norm per step",
                    count_per_step(timeline, anchors),
                    "",
                    events_of(timeline, in_typical_step(timeline, anchors)),
                ),
                Evidence("kernels", "kernels that add or sum it per step", count_per_step(timeline, rows), ""),
                Evidence("time", "their time per step", round(us_per_step(timeline, rows) / 1000, 3), "ms"),
            ),
            probability=0.9,
        )


def _may_add(shape: ConvShape) -> bool:
    """Whether a convolution has a bias, or its arguments were not recorded."""
    return shape.has_bias or not shape.weight


def _parts(timeline: Timeline, hosts: list[IntArray], names: tuple[str, ...]) -> list[tuple[IntArray, IntArray]]:
    """For each group of operators the operators inside them that handle the bias, and the library's kernels that do."""
    trace = timeline.trace
    joined = np.concatenate([no_rows(), *hosts])
    owner_of = np.repeat(np.arange(len(hosts)), [len(rows) for rows in hosts])
    order = np.argsort(joined, kind="stable")
    joined, owner_of = joined[order], owner_of[order]
    rows = trace.rows_named(names)
    rows = outermost(timeline, steady(timeline, rows[trace.cat[rows] == Category.CPU_OP]))
    within = inside(timeline, rows, joined)
    rows, owner = rows[within != NONE], owner_of[within[within != NONE]]
    kernels = [launched[is_named(trace, launched, _BIAS_KERNEL.search)] for launched in launched_by(timeline, joined)]
    return [
        (rows[owner == i], np.concatenate([no_rows(), *(kernels[k] for k in np.flatnonzero(owner_of == i))]))
        for i in range(len(hosts))
    ]


def _occurrence(
    timeline: Timeline, conv: int, added: IntArray, add_kernels: IntArray, summed: IntArray, sum_kernels: IntArray
) -> Occurrence:
    operators = np.sort(np.concatenate([added, summed]))
    kernels = np.concatenate([add_kernels, sum_kernels])
    launched = np.concatenate([no_rows(), *launched_by(timeline, operators)])
    scales = (Scale(np.sort(kernels), 0.0),) if len(kernels) else ()
    return Occurrence(conv, Edit(scales=scales, removed_ops=operators), distinct(np.concatenate([kernels, launched])))


PATTERN = Pattern(
    code="TAP507",
    slug="conv-bias-before-norm",
    title="Convolution bias before batch norm",
    fix=FixKind.SAFE,
    find=find,
    needs=("launches",),
    group="inefficient_conv",
    stage=Stage.ARCHITECTURE,
)
