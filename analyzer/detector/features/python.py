"""The host's own time: Python frames by where they come from, time without any operator, and what the loader does."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from ...trace.model import NONE, Category, FloatArray
from ..model import Feature
from .figures import known, log_count, log_ratio, log_us, pct, table
from .marks import Mark
from .view import View

_SOURCES: tuple[tuple[str, str, str], ...] = (
    ("images", "PIL/ PIL. cv2 imageio turbojpeg ImagingDecoder io/image.py skimage", "decoding and drawing images"),
    ("transforms", "transforms/ albumentations kornia image_processing", "augmentation"),
    ("numpy", "numpy", "numpy, and its hand-over to torch"),
    ("metrics", "scipy linear_sum_assignment sklearn pycocotools torchmetrics matplotlib", "metrics, matching, plots"),
    ("compiler", "_dynamo/ _inductor/ _functorch/ torch/fx/ triton/ sympy", "compiling and guards"),
    ("debugging", "traceback.py anomaly_mode.py gradcheck.py linecache.py", "tracebacks and debug modes"),
    ("checkpoint", "utils/checkpoint.py", "recomputing what was not saved"),
    ("loader", "utils/data/ multiprocessing/ queue.py queues.py", "the data loader and its queues"),
    (
        "files",
        "tensorboard/ pickle serialization.py json/ logging/ BufferedWriter function_print",
        "writing and logging",
    ),
    ("collector", "<built-in_function_collect> cuda/memory.py emptyCache", "collecting garbage, emptying the cache"),
    (
        "waiting",
        "synchronize method_item method_cpu method_tolist method_wait method_acquire method_poll",
        "waiting calls",
    ),
)
"""Where frames come from, by words in their names (blanks as `_`); the first that has one counts. Only files of
libraries and built-in calls are named: what a program calls its own functions tells nothing."""
_WORDS = tuple(tuple(words.split()) for _, words, _ in _SOURCES)
_SOURCE_NAMES = tuple(name for name, _, _ in _SOURCES)
_WHAT = {name: what for name, _, what in _SOURCES}
_COUNTED = ("numpy", "collector", "debugging")
_LOADER = re.compile(r"DataLoader.*__next__")
_SINGLE = re.compile(r"_SingleProcess|_SingleProcessDataLoaderIter")

FEATURES: tuple[Feature, ...] = (
    Feature("python.outside_ops", "% of the host span", "Host time in no operator: Python itself, and waiting."),
    Feature("python.longest_outside", "log10 us", "Longest stretch without operators."),
    Feature("python.frames", "log10 1", "Frames for each operator called: thin calls under much Python."),
    *(Feature(f"python.{name}", "% of the host span", f"Own time of frames of {what}.") for name, _, what in _SOURCES),
    *(Feature(f"python.{name}_calls", "1 (log10(1 + x))", f"Frames of {_WHAT[name]}.") for name in _COUNTED),
    Feature("python.to_host_calls", "1 (log10(1 + x))", "Calls that turn tensors into Python values."),
    Feature("python.loading", "% of the host span", "Inside the loader's next batch."),
    Feature("python.loading_here", "% of the host span", "The same, loaded by the main process itself."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    trace, frames = view.trace, view.frames
    window, own_ns = view.windows.of[frames], view.timeline.tree.self_ns[frames].astype(np.float64)
    source = view.by_name(frames, _source_of)
    is_known = source != NONE
    kinds = len(_SOURCES)
    key = window[is_known] * kinds + source[is_known]
    times = np.bincount(key, own_ns[is_known], minlength=view.size * kinds).reshape(view.size, kinds)
    counts = np.bincount(key, minlength=view.size * kinds).reshape(view.size, kinds)
    outside, longest = _outside(view)
    told = view.has_frames
    loading, here = _loading(view)
    return table(
        FEATURES,
        outside_ops=known(view.has_ops, pct(outside, view.host_ns)),
        longest_outside=known(view.has_ops, log_us(longest)),
        frames=known(told, log_ratio(view.count(window), view.call_count)),
        **{name: known(told, pct(times[:, k], view.host_ns)) for k, name in enumerate(_SOURCE_NAMES)},
        **{f"{name}_calls": known(told, log_count(counts[:, _SOURCE_NAMES.index(name)])) for name in _COUNTED},
        to_host_calls=known(told, log_count(view.sum(window, view.marked(frames, Mark.TO_PYTHON)))),
        loading=known(len(trace.rows(Category.USER_ANNOTATION)) > 0, pct(loading, view.host_ns)),
        loading_here=known(len(trace.rows(Category.USER_ANNOTATION)) > 0, pct(here, view.host_ns)),
    )


@lru_cache(maxsize=65536)
def _source_of(frame: str) -> int:
    text = frame.replace(" ", "_")
    return next((k for k, words in enumerate(_WORDS) if any(word in text for word in words)), NONE)


def _outside(view: View) -> tuple[FloatArray, FloatArray]:
    """By window: host time in no operator, and the longest stretch of it."""
    tops = view.ops[view.outermost_op[view.ops] == view.ops]
    window = view.windows.of[tops].astype(np.int64)
    start, end = view.windows.start_ns, view.windows.end_ns
    order = np.argsort(window, kind="stable")
    tops, window = tops[order], window[order]
    begins = np.clip(view.trace.ts_ns[tops], start[window], end[window])
    ends = np.clip(view.trace.end_ns[tops], start[window], end[window])
    first = np.append(True, window[1:] != window[:-1]) if len(tops) else np.zeros(0, dtype=np.bool_)
    # Windows follow one another, so the furthest end so far is never one of a window to come.
    furthest = np.append(0, np.maximum.accumulate(ends)[:-1])[: len(ends)]
    reached = np.where(first, start[window], furthest)
    gaps = np.maximum(begins - reached, 0)
    last_end = np.where(view.count(window) > 0, view.largest(window, ends), start)
    behind = np.maximum(end - last_end, 0)
    return view.sum(window, gaps) + behind, np.maximum(view.largest(window, gaps), behind)


def _loading(view: View) -> tuple[FloatArray, FloatArray]:
    """By window: time in the loader's `next`, and the part of it that the main process does the loading itself."""
    rows = np.flatnonzero(view.trace.cat == Category.USER_ANNOTATION)
    rows = rows[view.named(rows, _LOADER)]
    rows = rows[view.windows.of[rows] != NONE]
    window, took_ns = view.windows.of[rows], view.trace.dur_ns[rows]
    return view.sum(window, took_ns), view.sum(window, took_ns * view.named(rows, _SINGLE))
