"""Selections of rows for faults that are settings."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from torchtraceap.analyzer.timeline.columns import is_among, is_named
from torchtraceap.analyzer.timeline.kernel_names import Precision
from torchtraceap.analyzer.timeline.kernels import kernel_name
from torchtraceap.analyzer.timeline.model import KernelClass, Timeline
from torchtraceap.analyzer.timeline.tree import enclosing
from torchtraceap.analyzer.trace.model import DEVICE_CATEGORIES, NONE, BoolArray, IntArray

MATRIX = (KernelClass.GEMM_TENSOR_CORE, KernelClass.GEMM_SIMT, KernelClass.CONV_TENSOR_CORE, KernelClass.CONV_SIMT)


def no_rows(timeline: Timeline) -> BoolArray:
    """No event."""
    return np.zeros(len(timeline.trace), dtype=np.bool_)


def with_operators(timeline: Timeline, device: IntArray) -> BoolArray:
    """Device work and the operators that launched it."""
    found = no_rows(timeline)
    found[device] = True
    operators = timeline.launches.op[device]
    found[operators[operators != NONE]] = True
    return found


def kernels(timeline: Timeline, classes: Collection[KernelClass]) -> IntArray:
    """Device work of the given classes."""
    rows = timeline.trace.rows(*DEVICE_CATEGORIES)
    return rows[is_among(timeline.kernel_class[rows], tuple(classes))]


def of_precision(timeline: Timeline, rows: IntArray, precisions: Collection[Precision]) -> IntArray:
    """Those kernels whose names say one of the precisions."""
    names, first = np.unique(timeline.trace.name[rows], return_index=True)
    said = [kernel_name(timeline.trace, int(rows[i])).precision in precisions for i in first.tolist()]
    wanted = names[np.array(said, dtype=np.bool_)] if len(names) else names
    return rows[is_among(timeline.trace.name[rows], wanted)]


def under(timeline: Timeline, is_outer: BoolArray) -> BoolArray:
    """All host events inside of the given ones, and these."""
    return enclosing(timeline.tree.parent, is_outer) != NONE


def named(timeline: Timeline, question: Callable[[str], object]) -> BoolArray:
    """For each event, the answer to a question about its name."""
    return is_named(timeline.trace, np.arange(len(timeline.trace)), question)
