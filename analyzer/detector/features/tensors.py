"""What the operators' inputs are: element types and their changes, casts, layout in memory, sizes."""

from __future__ import annotations

import numpy as np

from ...timeline.op_inputs import ELEMENT_BYTES
from ...trace.model import FloatArray, OpInputs
from ..model import Feature
from . import families
from .figures import NAN, among, log_count, mean, pct, table
from .inputs import Kind, Memory, is_contiguous
from .view import View

_SHARES = (
    ("half", Kind.HALF, "fp16 and bf16 tensors."),
    ("fp64", Kind.FP64, "fp64 tensors: rarely meant."),
    ("bytes", Kind.BYTE, "8-bit tensors: images, quantised values."),
)
_FLOATS = (Kind.FP32, Kind.HALF, Kind.FP64)

FEATURES: tuple[Feature, ...] = (
    *(Feature(f"tensors.{name}", "% of calls with inputs", f"Calls on {why}") for name, _, why in _SHARES),
    Feature("tensors.double_calls", "1 (log10(1 + x))", "Calls with an fp64 tensor of more than one element anywhere."),
    Feature("tensors.mixed", "% of calls with inputs", "Calls where floating types of different widths meet."),
    Feature("tensors.type_flips", "% of floating calls", "Calls on another floating type than the one before."),
    Feature("tensors.casts", "1 (log10(1 + x))", "Real casts: copies that change the type."),
    Feature(
        "tensors.cast_time", "% of the compute time", "Time of the copies that cast (the operators' own on the CPU)."
    ),
    Feature(
        "tensors.casts_per_heavy", "1 (log10(1 + x))", "Casts for each product or convolution: weights cast each time."
    ),
    Feature("tensors.narrowing", "% of casts", "Casts to fewer bytes."),
    Feature("tensors.repeated_casts", "% of casts", "Casts of the shapes of one before it in the window."),
    Feature("tensors.redundant_copies", "% of copies", "Copies from dense to equally dense memory of the same type."),
    Feature("tensors.layout_copies", "% of copies", "Copies that change the order of axes in memory."),
    Feature("tensors.copied", "log10 elements", "Elements copied."),
    Feature("tensors.churn", "1 (log10(1 + x))", "Dense copies made of permuted tensors."),
    Feature("tensors.layout_flips", "% of images", "Calls on images that lie otherwise than the image before."),
    Feature(
        "tensors.strided", "% of calls with inputs", "Calls whose first tensor is not dense in the order of its axes."
    ),
    Feature("tensors.five_axes", "% of calls with inputs", "Calls on tensors of five axes and more."),
    Feature("tensors.single_batch", "% of calls with inputs", "Calls on a first axis of 1: samples one by one."),
    Feature("tensors.elements", "log10 elements", "Mean size of the largest input: small work launched often."),
    Feature(
        "tensors.same_size_run", "1 (log10(1 + x))", "Longest run of pointwise calls on the same number of elements."
    ),
    Feature("tensors.pointwise_run", "1 (log10(1 + x))", "Longest run of pointwise calls and reductions."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    if not view.has_shapes:
        return np.full((view.size, len(FEATURES)), NAN)
    facts, rows, window = view.input_facts, view.call_rows, view.call_window
    told = facts.column("tensors", rows) > 0
    rows, window = rows[told], window[told]
    kind, axes, elements = (facts.column(name, rows) for name in ("kind", "axes", "elements"))
    memory, count = facts.column("memory", rows), view.count(window)
    is_dense, doubles = facts.column("is_dense", rows), facts.column("has_double", rows)
    floating, image = among(kind.astype(np.int64), _FLOATS), memory != Memory.UNKNOWN

    def share(which: np.ndarray) -> FloatArray:
        return pct(view.sum(window, which), count)

    images, floats = view.count(window[image]), view.count(window[floating])
    return table(
        FEATURES,
        **{name: share(kind == wanted) for name, wanted, _ in _SHARES},
        double_calls=log_count(view.sum(window, doubles)),
        mixed=share(facts.column("is_mixed", rows)),
        type_flips=pct(_flips(view, window[floating], kind[floating]), floats),
        layout_flips=pct(_flips(view, window[image], memory[image]), images),
        strided=share(is_dense == 0) if is_dense.any() else np.full(view.size, NAN),
        five_axes=share(axes >= 5),
        single_batch=share((facts.column("lead", rows) == 1) & (axes >= 2)),
        elements=log_count(mean(view.sum(window, elements), count)),
        **_runs(view),
        **_copies(view),
    )


def _flips(view: View, window: np.ndarray, values: np.ndarray) -> FloatArray:
    """By window, how often a value differs from the one before it."""
    changed = (values[1:] != values[:-1]) & (window[1:] == window[:-1])
    return view.count(window[1:][changed])


def _runs(view: View) -> dict[str, FloatArray]:
    """Columns about unbroken runs of pointwise calls, by name. Views and allocations in between do not break one."""
    names = ("arithmetic", "powers and roots", "activation", "comparison", "where and mask", "sine and cosine")
    kept = ~view.are_of(view.call_family, *("view", "permute", "allocation", "slice and split", "host tensor"))
    family, window, rows = view.call_family[kept], view.call_window[kept], view.call_rows[kept]
    pointwise = view.are_of(family, *names)
    either = pointwise | (family == families.number("reduction"))
    elements = view.input_facts.column("elements", rows)
    return {
        "same_size_run": log_count(_longest(view, window, np.where(pointwise, elements, -1.0))),
        "pointwise_run": log_count(_longest(view, window, np.where(either, 0.0, -1.0))),
    }


def _longest(view: View, window: np.ndarray, values: np.ndarray) -> FloatArray:
    """By window, the length of the longest run of one value; runs of values below 0 do not count."""
    if not len(values):
        return np.zeros(view.size)
    starts = np.flatnonzero(np.append(True, (values[1:] != values[:-1]) | (window[1:] != window[:-1])))
    lengths = np.diff(np.append(starts, len(values)))
    runs = values[starts] >= 0
    return view.largest(window[starts[runs]], lengths[runs])


def _copies(view: View) -> dict[str, FloatArray]:
    """Columns about `copy_` and `_to_copy`, wherever they stand, by name."""
    trace = view.trace
    copies = view.ops[view.family == families.number("copy")]
    window = view.windows.of[copies]
    facts = view.facts(copies, _copy_facts, 4)
    casts, narrowing, redundant, relaid = facts.T
    count, cast_count = view.count(window), view.sum(window, casts)
    heavy = view.are_of(view.call_family, "linear", "batched matmul", "convolution")
    key = trace.inputs[copies].astype(np.int64)
    order = np.lexsort((key, window))
    again = np.zeros(len(copies), dtype=np.bool_)
    again[order[1:]] = (key[order][1:] == key[order][:-1]) & (window[order][1:] == window[order][:-1])
    heavy_count = view.sum(view.call_window, heavy)
    return {
        "casts": log_count(cast_count),
        "cast_time": pct(view.sum(window, _copy_ns(view, copies) * casts), view.work_ns),
        "casts_per_heavy": log_count(np.where(heavy_count > 0, cast_count / np.maximum(heavy_count, 1), 0.0)),
        "narrowing": pct(view.sum(window, narrowing), cast_count),
        "repeated_casts": pct(view.sum(window, casts * again), cast_count),
        "redundant_copies": pct(view.sum(window, redundant), count),
        "layout_copies": pct(view.sum(window, relaid), count),
        "copied": log_count(view.sum(window, view.input_facts.column("first_elements", copies))),
        "churn": log_count(view.sum(window, relaid * (view.outer_family(copies) == families.number("clone")))),
    }


def _copy_ns(view: View, copies: np.ndarray) -> FloatArray:
    """Time of the work of each copy."""
    if not view.has_device:
        return view.trace.dur_ns[copies].astype(np.float64)
    took_ns = np.bincount(
        view.timeline.launches.op[view.device] + 1, view.trace.dur_ns[view.device], minlength=len(view.trace) + 1
    )
    return took_ns[copies + 1].astype(np.float64)


def _copy_facts(_name: str, inputs: OpInputs) -> tuple[bool, bool, bool, bool]:
    """Of one `copy_`: whether it casts, to fewer bytes, copies what is dense already, and re-orders axes in memory."""
    target, source = inputs.dtype(0), inputs.dtype(1)
    casts = bool(target and source and target != source)
    narrows = casts and ELEMENT_BYTES.get(target, 4) < ELEMENT_BYTES.get(source, 4)
    dims, strides, from_strides = inputs.shape(0), inputs.stride(0), inputs.stride(1)
    alike = bool(strides) and strides == from_strides and dims == inputs.shape(1)
    redundant = alike and not casts and is_contiguous(dims, strides)
    relaid = bool(strides and from_strides) and not alike and dims == inputs.shape(1) and not casts
    return casts, narrows, redundant, relaid
