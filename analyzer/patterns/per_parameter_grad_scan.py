"""per-parameter-grad-scan: each step asks for a norm or a finite check of every parameter, one by one.

Why it is slow: per parameter it costs a few operators, Python's loop and a read of one number, which on a device is
a wait for everything queued; one multi-tensor norm and one read tell the same.
Trace: runs of reductions that Python asked for, each followed by a read (`aten::item`, `aten::is_nonzero`), as many as
a good part of the gradients that backward accumulates, over tensors of the gradients' shapes.
Edit: one `get_total_norm` and one read stay. On the CPU that is the norms already there (else a share of the checks'
time) and a few µs a tensor: measured with torch 2.13 on one thread, 60-150 tensors, norm and `isfinite` together keep
0.07-0.18 of their time, `isfinite` alone 0.09-0.24, `isnan` 0.2-0.45, a norm alone 0.3-0.9. On a device all reads but
the last no longer wait.
Gate: few reads, reads that no reduction stands before, other shapes than the gradients', traces without a backward.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.columns import is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, launched_by, us_per_step
from ..timeline.transfers import waits_in
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site
from .runs import gradients, runs_of, spanned

_READS = ("aten::item", "aten::is_nonzero", "aten::_local_scalar_dense")
_NORMS = ("aten::linalg_vector_norm", "aten::norm")
_REDUCTIONS = (
    *_NORMS,
    *("aten::isfinite", "aten::isnan", "aten::isinf", "aten::isneginf", "aten::isposinf"),
    *("aten::sum", "aten::mean", "aten::max", "aten::min", "aten::amax", "aten::amin", "aten::std", "aten::var"),
    *("aten::abs", "aten::pow", "aten::square", "aten::ne", "aten::eq", "aten::any", "aten::all"),
)
_BETWEEN = (
    *("aten::mul", "aten::div", "aten::add", "aten::add_", "aten::sqrt", "aten::abs_", "aten::pow_"),
    *("aten::lt", "aten::gt", "aten::le", "aten::ge", "aten::logical_not", "aten::bitwise_not"),
    *("aten::logical_or", "aten::bitwise_or", "aten::__or__", "aten::logical_and", "aten::bitwise_and"),
    *("aten::detach", "aten::view", "aten::reshape", "aten::flatten", "aten::to", "aten::cpu"),
)
"""Small operators that may stand between a reduction and its read."""

_LEAST_READS = 16
_LEAST_SHARE_OF_GRADIENTS = 0.3
"""Reads in a run, against the gradients that a step accumulates, below which it is no scan of the parameters."""

_US_PER_TENSOR = 4.0
"""What one tensor of a multi-tensor norm costs on the CPU beside the norm itself: list, call, stack."""
_NORM_OF_CHECK = 0.2
"""Time of a norm against that of the finite checks that it stands in for."""
_DEVICE_HOST_FACTOR = 0.15
_DEVICE_KERNEL_FACTOR = 0.4


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per place that scans the gradients."""
    trace = timeline.trace
    known = gradients(timeline)
    if known is None:
        return
    least = max(_LEAST_READS, _LEAST_SHARE_OF_GRADIENTS * known.per_step)
    reads: dict[int, IntArray] = {}
    occurrences: list[Occurrence] = []
    for run in runs_of(timeline, {*_READS, *_REDUCTIONS, *_BETWEEN}, per_run=_READS, least=least):
        if known.are_like(timeline, run[is_among(run, trace.rows_named(_REDUCTIONS))]):
            own = run[is_among(run, trace.rows_named(_READS))]
            reads[int(own[0])] = own
            occurrences.append(_occurrence(timeline, run, own, min(len(own), known.per_step)))
    for group in by_site(timeline, occurrences):
        yield _candidate(timeline, group, np.concatenate([reads[one.anchor] for one in group]))


def _candidate(timeline: Timeline, group: tuple[Occurrence, ...], reads: IntArray) -> Candidate:
    rows = np.sort(np.concatenate([one.cost_rows for one in group]))
    return Candidate(
        what="each parameter's gradient is checked by itself",
        remedy="one norm over all gradients, read once,",
        occurrences=group,
        evidence=(
            Evidence(
                "reads",
                "values read one by one, per step",
                count_per_step(timeline, reads),
                "",
                events_of(timeline, in_typical_step(timeline, reads)),
            ),
            Evidence("scan", "time of the scan per step", round(us_per_step(timeline, rows) / 1000, 3), "ms"),
        ),
        probability=0.95,
    )


def _occurrence(timeline: Timeline, run: IntArray, reads: IntArray, tensors: float) -> Occurrence:
    rows = spanned(timeline, run)
    dur_ns = timeline.trace.dur_ns
    if timeline.is_cpu_only:
        edit = Edit(scales=(Scale(rows, _kept_on_cpu(timeline, run, tensors, int(dur_ns[rows].sum()))),))
        return Occurrence(anchor=int(reads[0]), edit=edit, cost_rows=rows)
    kernels = np.concatenate(launched_by(timeline, rows))
    waits = np.concatenate(waits_in(timeline, reads[:-1]))
    edit = Edit(
        scales=(Scale(rows, _DEVICE_HOST_FACTOR), Scale(kernels, _DEVICE_KERNEL_FACTOR)),
        unsynced=waits,
    )
    cost_rows = kernels if dur_ns[kernels].sum() > dur_ns[rows].sum() else rows
    return Occurrence(anchor=int(reads[0]), edit=edit, cost_rows=cost_rows)


def _kept_on_cpu(timeline: Timeline, run: IntArray, tensors: float, total_ns: int) -> float:
    """Share of a run's time that one multi-tensor norm over the same tensors takes."""
    trace = timeline.trace
    norms = run[is_among(run, trace.rows_named(_NORMS))]
    norm_ns = trace.dur_ns[norms].sum() if len(norms) else _NORM_OF_CHECK * trace.dur_ns[run].sum()
    return min(1.0, float(norm_ns + tensors * _US_PER_TENSOR * 1000) / max(total_ns, 1))


PATTERN = Pattern(
    code="TAP805",
    slug="per-parameter-grad-scan",
    title="Gradients are checked one by one",
    fix=FixKind.SAFE,
    find=find,
    group="training loop and memory",
)
