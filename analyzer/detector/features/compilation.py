"""`torch.compile`: compiled regions, what falls out of them, and compilations and searches inside measured steps."""

from __future__ import annotations

import re

import numpy as np

from ...timeline.columns import is_among
from ...timeline.compiled import region_id
from ...timeline.model import KernelClass
from ...trace.model import NONE, Category, FloatArray
from ..model import Feature
from .figures import among, known, log_count, pct, table
from .marks import Mark
from .view import MATRIX, View

_GRAPH = re.compile(r"GraphLaunch")

FEATURES: tuple[Feature, ...] = (
    Feature(
        "compilation.regions", "1 (log10(1 + x))", "Executions of compiled regions: many for one function are breaks."
    ),
    Feature("compilation.recompilations", "1 (log10(1 + x))", "Highest compilation of one function among the regions."),
    Feature("compilation.share", "% of the host span", "Host time in compiled regions."),
    Feature("compilation.eager_calls", "% of calls", "Operators outside compiled regions beside those inside."),
    Feature("compilation.compiling", "% of the host span", "Host time of compiling."),
    Feature("compilation.resumed", "1 (log10(1 + x))", "Functions entered again after a break."),
    Feature("compilation.triton", "% of device events", "Compiled kernels."),
    Feature("compilation.by_graph", "% of compiled kernels", "Of these, launched by a graph and not one by one."),
    Feature("compilation.matrix_names", "1 (log10(1 + x))", "Matrix kernels by name for one operator: trials."),
    Feature(
        "compilation.one_step_kernels",
        "% of device events",
        "Kernels of names that run in this step only: trials.",
    ),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    trace, of = view.trace, view.windows.of
    regions = view.with_mark(Mark.COMPILED_REGION)
    regions = regions[trace.cat[regions] != Category.PYTHON_FUNCTION]
    region_window = of[regions]
    times = view.by_name(regions, lambda name: max(region_id(name)[1], 0))
    compiles = view.with_mark(Mark.COMPILING)
    inner = view.timeline.tree.parent[compiles]
    outer_compile = is_among(inner, compiles)
    in_region = _inside(view, regions)
    triton = view.kernel_class == KernelClass.TRITON
    runtime = view.timeline.launches.runtime[view.device]
    by_graph = (runtime != NONE) & view.named(np.maximum(runtime, 0), _GRAPH) if len(runtime) else triton
    compiled_count = view.sum(view.device_window, triton)
    events = view.count(view.device_window)
    told = view.has_ops
    return table(
        FEATURES,
        regions=known(told, log_count(view.count(region_window))),
        recompilations=known(told, log_count(view.largest(region_window, times))),
        share=known(told, pct(view.sum(region_window, trace.dur_ns[regions]), view.host_ns)),
        eager_calls=known(told, _eager_share(view, in_region, len(regions) > 0)),
        compiling=known(
            told,
            pct(view.sum(of[compiles], trace.dur_ns[compiles] * ~outer_compile), view.host_ns),
        ),
        resumed=known(told, log_count(view.count(of[view.with_mark(Mark.RESUMED)]))),
        triton=known(view.has_device, pct(compiled_count, events)),
        by_graph=known(view.has_device, pct(view.sum(view.device_window, triton & by_graph), compiled_count)),
        matrix_names=known(view.has_device, _matrix_names(view)),
        one_step_kernels=known(view.has_device, pct(_names_of_one_step(view), events)),
    )


def _inside(view: View, regions: np.ndarray) -> np.ndarray:
    """For each call, whether a compiled region is the annotation or operator round it."""
    is_region = np.zeros(len(view.trace) + 1, dtype=np.bool_)
    is_region[regions] = True
    tree = view.timeline.tree
    rows = view.call_rows
    return is_region[view.outermost_op[rows]] | is_region[tree.annotation[rows]]


def _eager_share(view: View, in_region: np.ndarray, is_compiled: bool) -> FloatArray:
    """Calls outside compiled regions in per cent; 0 where the trace has no compiled region."""
    if not is_compiled:
        return np.zeros(view.size)
    return pct(view.sum(view.call_window, ~in_region), view.call_count)


def _matrix_names(view: View) -> FloatArray:
    """Most matrix kernels of different names that one operator launched."""
    which = among(view.kernel_class, MATRIX)
    rows = view.device[which]
    op = view.timeline.launches.op[rows].astype(np.int64)
    rows, op = rows[op != NONE], op[op != NONE]
    pairs = np.sort(op * (len(view.trace.names) + 1) + view.trace.name[rows])
    distinct = pairs[np.append(True, pairs[1:] != pairs[:-1])] if len(pairs) else pairs
    ops, counts = np.unique(distinct // (len(view.trace.names) + 1), return_counts=True)
    window = view.windows.of[ops]
    inside = window != NONE
    return log_count(view.largest(window[inside], counts[inside]))


def _names_of_one_step(view: View) -> FloatArray:
    """Device events whose kernel's name occurs in one steady step only, of several."""
    steps = view.windows.step[view.device_window].astype(np.int64)
    if not len(steps) or steps.min() == steps.max():
        return np.zeros(view.size)
    names = view.trace.name[view.device]
    lowest = np.full(len(view.trace.names), np.iinfo(np.int64).max)
    highest = np.full(len(view.trace.names), -1)
    np.minimum.at(lowest, names, steps)
    np.maximum.at(highest, names, steps)
    return view.sum(view.device_window, (lowest == highest)[names])
