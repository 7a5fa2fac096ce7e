"""Which host call caused which device work, by correlation."""

from __future__ import annotations

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, NONE, Category, Int32Array, IntArray, Trace
from .model import CallTree, Launches


def build_launches(trace: Trace, tree: CallTree) -> Launches:
    """Join device work to runtime calls (many to one under a graph launch) and to operators.

    The operator is the innermost one round the launching call; where that call was not recorded, or stands outside
    every operator, the one that the device event's own external id names.
    """
    size = len(trace)
    device_rows = trace.rows(*DEVICE_CATEGORIES)
    runtime_rows = trace.rows(Category.RUNTIME)
    runtime = np.full(size, NONE, dtype=np.int32)
    runtime[device_rows] = _lookup(trace.correlation[runtime_rows], runtime_rows, trace.correlation[device_rows])
    op = tree.op.copy()
    launching = runtime[device_rows]
    by_call = np.where(launching >= 0, tree.op[launching], NONE)
    op_rows = trace.rows(Category.CPU_OP)
    by_id = _lookup(trace.external_id[op_rows], op_rows, trace.external_id[device_rows])
    op[device_rows] = np.where(by_call >= 0, by_call, by_id)

    launched = device_rows[launching >= 0]
    launched = launched[np.argsort(runtime[launched], kind="stable")].astype(np.int32)
    device_start = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.bincount(runtime[launched], minlength=size), out=device_start[1:])
    return Launches(runtime=runtime, op=op, device_start=device_start, device_rows=launched)


def _lookup(keys: IntArray, rows: IntArray, wanted: IntArray) -> Int32Array:
    """The first of `rows` whose key equals each wanted id; NONE where there is none. Ids below 1 mean nothing."""
    valid = keys > 0
    keys, rows = keys[valid], rows[valid]
    if not len(keys):
        return np.full(len(wanted), NONE, dtype=np.int32)
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, rows[place], NONE).astype(np.int32)
