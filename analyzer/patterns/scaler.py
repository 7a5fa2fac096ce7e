"""Values that the gradient scaler reads from the device: its own pattern's, and not other reads'."""

from __future__ import annotations

import numpy as np

from ..timeline.columns import is_named
from ..timeline.model import Timeline
from ..timeline.select import steady
from ..timeline.transfers import outermost_named
from ..trace.model import NONE, BoolArray, Category, IntArray

_FRAME = "grad_scaler.py("
_CHECK = "aten::_amp_foreach_non_finite_check_and_unscale_"
_OPTIMIZER = "Optimizer.step#"
_READS = ("aten::item", "aten::_local_scalar_dense")


def scaler_reads(timeline: Timeline) -> IntArray:
    """Reads of device values by a `GradScaler`: with Python frames those made in its file; without, those that come
    directly behind its check of the gradients or directly before the optimizer's step."""
    reads = outermost_named(timeline, _READS)
    in_file = np.array([_has_frame(timeline, row) for row in reads.tolist()], dtype=np.bool_)
    if not len(timeline.trace.rows_named((_CHECK,))):
        return reads[in_file]
    has_frames = np.array([_is_in_python(timeline, row) for row in reads.tolist()], dtype=np.bool_)
    return reads[in_file | (~has_frames & _between_check_and_step(timeline, reads))]


def _has_frame(timeline: Timeline, row: int) -> bool:
    trace = timeline.trace
    stack = trace.stack_of(row)
    return _FRAME in stack or any(_FRAME in trace.name_of(outer) for outer in timeline.tree.ancestors(row))


def _is_in_python(timeline: Timeline, row: int) -> bool:
    return timeline.tree.python[row] != NONE or bool(timeline.trace.stack_of(row))


def _between_check_and_step(timeline: Timeline, reads: IntArray) -> BoolArray:
    """Whether the last thing before a read (other reads left out) is the check, or the next one the step."""
    trace, tree = timeline.trace, timeline.tree
    rows = steady(timeline, trace.rows(Category.CPU_OP, Category.USER_ANNOTATION))
    parent = tree.parent[rows]
    is_step = is_named(trace, rows, lambda name: name.startswith(_OPTIMIZER))
    is_check = is_named(trace, rows, lambda name: name == _CHECK)
    is_top = (parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)
    is_telling = (is_top & ~np.isin(rows, reads) & (trace.cat[rows] == Category.CPU_OP)) | is_step
    telling, is_step, is_check = rows[is_telling], is_step[is_telling], is_check[is_telling]
    order = np.lexsort((trace.ts_ns[telling], trace.thread[telling]))
    telling, is_step, is_check = telling[order], np.append(is_step[order], False), np.append(is_check[order], False)
    width = int(trace.end_ns.max()) + 1
    keys = trace.thread[telling].astype(np.int64) * width + trace.ts_ns[telling]
    at = np.searchsorted(keys, trace.thread[reads].astype(np.int64) * width + trace.ts_ns[reads])
    return is_check[np.maximum(at - 1, 0)] | is_step[at]
