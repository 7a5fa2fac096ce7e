"""Forward convolutions: their kinds, rates, layout, and what follows them."""

from __future__ import annotations

import numpy as np

from ...timeline.convolution_calls import ConvShape, convolution_calls
from ...trace.model import NONE, FloatArray, OpInputs
from ..model import Feature
from . import families
from .efficiency import best_rate
from .figures import NAN, known, log_count, log_ratio, pct, table
from .inputs import Kind, Memory, kind_of, memory_of
from .view import View

_KINDS: tuple[tuple[str, str], ...] = (
    ("grouped", "More than one group: far below the roofline in some layouts and types."),
    ("patches", "Kernel equal to stride, as in patch embeddings: a matrix product in disguise."),
    ("volumes", "Three spatial axes."),
    ("temporal", "Kernel extends along time only: one axis of a factorised 3-D convolution."),
    ("dilated", "Dilated: falls back to slow kernels."),
    ("odd_channels", "Channels that are no multiple of 8 (the image's own three left out)."),
)

FEATURES: tuple[Feature, ...] = (
    Feature("convolutions.calls", "1 (log10(1 + x))", "Forward convolutions."),
    Feature("convolutions.share", "% of the compute time", "Time of forward convolutions."),
    Feature("convolutions.against_mean", "log10 1", "Rate against all convolutions of the trace: a pathway that lags."),
    *(Feature(f"convolutions.{name}", "% of convolution time", why) for name, why in _KINDS),
    Feature("convolutions.grouped_rate", "log10 1", "Rate of grouped ones against the trace's best dense ones."),
    Feature("convolutions.patch_rate", "log10 1", "Rate of patch embeddings against the trace's best."),
    Feature("convolutions.temporal_rate", "log10 1", "Rate of temporal ones against the trace's best."),
    Feature("convolutions.channels_last", "% of those known", "Inputs that lie in channels_last."),
    Feature(
        "convolutions.half_first", "% of convolution time", "fp16 or bf16 inputs in channels-first: transposed inside."
    ),
    Feature("convolutions.flips", "% of convolutions", "Layout differs from the convolution before: broken midway."),
    Feature(
        "convolutions.kernels",
        "1 (log10(1 + x))",
        "Device events for a convolution: transposes, and trials while autotuning.",
    ),
    Feature(
        "convolutions.bias_then_norm", "% of convolutions", "With a bias that the batch norm behind takes off again."
    ),
    Feature("convolutions.then_frozen_norm", "% of convolutions", "Followed by a batch norm in eval: could be folded."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    told = view.has_ops
    every = convolution_calls(view.timeline)
    calls = every.chosen(view.windows.of[every.rows] != NONE)
    window, took_ns = view.windows.of[calls.rows], calls.time_ns.astype(np.float64)
    flops = np.nan_to_num(calls.flops)
    facts = _facts_of_each(calls.shapes)
    memory, is_half, bias = facts[:, -3], facts[:, -2], facts[:, -1]
    count, time_ns, done = view.count(window), view.sum(window, took_ns), view.sum(window, flops)
    busy = (took_ns > 0) & (flops > 0)
    best = best_rate(flops[busy], took_ns[busy])
    overall = flops[busy].sum() / took_ns[busy].sum() if busy.any() else NAN
    shaped = told and view.has_shapes

    def rate(kind: str, against: float) -> FloatArray:
        which = facts[:, [name for name, _ in _KINDS].index(kind)]
        return known(shaped, log_ratio(view.sum(window, flops * which), view.sum(window, took_ns * which) * against))

    shares = [pct(view.sum(window, took_ns * facts[:, k]), time_ns) for k in range(len(_KINDS))]
    has_layout = memory != Memory.UNKNOWN
    order = np.lexsort((view.trace.ts_ns[calls.rows], window))
    changes = _changes(memory[order], window[order])
    then_norm, frozen = _followed_by_norm(view, calls.rows)
    return table(
        FEATURES,
        calls=known(told, log_count(count)),
        share=known(told, pct(time_ns, view.work_ns)),
        against_mean=known(shaped, log_ratio(done, time_ns * overall)),
        **{name: known(shaped, share) for (name, _), share in zip(_KINDS, shares, strict=True)},
        grouped_rate=rate("grouped", best),
        patch_rate=rate("patches", best),
        temporal_rate=rate("temporal", best),
        channels_last=known(
            shaped and bool(has_layout.any()),
            pct(view.sum(window, memory == Memory.CHANNELS_LAST), view.sum(window, has_layout)),
        ),
        half_first=known(shaped, pct(view.sum(window, took_ns * is_half * (memory == Memory.CHANNELS_FIRST)), time_ns)),
        flips=known(shaped, pct(view.sum(window[order], changes), count)),
        kernels=known(view.has_device and told, _kernels_per_call(view, count)),
        bias_then_norm=known(shaped, pct(view.sum(window, then_norm * bias), count)),
        then_frozen_norm=known(shaped, pct(view.sum(window, frozen), count)),
    )


def _facts_of_each(shapes: tuple[ConvShape, ...]) -> FloatArray:
    """Shape (convolutions, facts). Alike calls share one shape object, and are looked at once."""
    known = {key: _facts(shape) for key, shape in {id(shape): shape for shape in shapes}.items()}
    found = np.array([known[id(shape)] for shape in shapes], dtype=np.float64)
    return found.reshape(len(shapes), len(_KINDS) + 3)


def _facts(shape: ConvShape) -> tuple[float, ...]:
    """One number for each of `_KINDS`, then layout, whether in half precision, whether with a bias."""
    kernel = shape.kernel
    stride = shape.stride * len(kernel) if len(shape.stride) == 1 else shape.stride
    channels = shape.weight[:2]
    return (
        shape.groups > 1,
        bool(kernel) and kernel == stride and max(kernel) > 1 and not shape.is_transposed,
        shape.axes == 3,
        len(kernel) == 3 and kernel[0] > 1 and max(kernel[1:]) == 1,
        bool(shape.dilation) and max(shape.dilation) > 1,
        shape.groups == 1 and any(size > 3 and size % 8 for size in channels),
        memory_of(shape.data, shape.strides),
        kind_of(shape.dtype) == Kind.HALF,
        shape.has_bias,
    )


def _changes(memory: FloatArray, window: np.ndarray) -> np.ndarray:
    """For each convolution, whether it lies in memory otherwise than the one before it in its window."""
    changed = np.zeros(len(memory), dtype=np.bool_)
    both = (memory[1:] != Memory.UNKNOWN) & (memory[:-1] != Memory.UNKNOWN)
    changed[1:] = both & (memory[1:] != memory[:-1]) & (window[1:] == window[:-1])
    return changed


def _followed_by_norm(view: View, rows: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """For each convolution, whether a batch norm comes next in its window, and whether that one is in eval.

    In training, the norm's count of batches is raised in between.
    """
    then, frozen = np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows))
    if not len(view.call_rows):
        return then.astype(np.float64), frozen
    place = np.full(len(view.trace), NONE, dtype=np.int64)
    place[view.call_rows] = np.arange(len(view.call_rows))
    here, last = place[rows], len(view.call_rows) - 1
    behind = np.minimum(here + 1, last)
    behind = np.where(view.call_family[behind] == families.number("arithmetic"), np.minimum(behind + 1, last), behind)
    then = (here != NONE) & (view.call_family[behind] == families.number("batch norm"))
    then &= view.call_window[behind] == view.windows.of[rows]
    frozen[then] = view.facts(view.call_rows[behind[then]], _is_in_eval, 1)[:, 0]
    return then.astype(np.float64), frozen


_TRAINING_AT = 5
"""Where `aten::batch_norm` and its inner operators are told whether they train."""


def _is_in_eval(_name: str, inputs: OpInputs) -> tuple[bool]:
    return (inputs.value(_TRAINING_AT) in ("False", "0"),)


def _kernels_per_call(view: View, count: FloatArray) -> FloatArray:
    """Device events launched by operators of the convolution families, for each forward convolution."""
    window, _, family, _ = view.work
    launched = view.count(window[family == families.number("convolution")])
    return log_count(np.where(count > 0, launched / np.maximum(count, 1), 0.0))
