"""Which operators run: shares of compute time by family, and how many of those that tell by their number."""

from __future__ import annotations

import re

import numpy as np

from ...trace.model import FloatArray
from ..model import Feature
from . import families
from .families import FAMILIES
from .figures import NAN, log_count, pct, table
from .marks import Mark
from .view import View

_TIMED = (
    *("fallback convolution", "einsum", "batch norm", "group norm", "activation", "arithmetic", "powers and roots"),
    *("where and mask", "cat and stack", "index", "index put", "slice backward", "data-dependent shape", "zero"),
    *("sort", "pairwise distance", "grid sampling", "interpolation", "padding", "foreach", "roll"),
    "region of interest",
)
"""Families whose time no class of work tells already."""

_COUNTED: tuple[tuple[str, str], ...] = (
    ("host scalar", "Reads of a scalar: each one waits for the device."),
    ("data-dependent shape", "Sizes that the host must learn from the device."),
    ("finite check", "Checks of gradients, one by one or at once."),
    ("zero", "Gradients set to zero tensor by tensor."),
    ("fill", "Fills; of fresh memory too where a debug mode fills it."),
    ("constant", "Constants made anew."),
    ("range", "Coordinates made anew."),
    ("arithmetic", "Pointwise arithmetic: chains of it, and optimizers that go tensor by tensor."),
    ("powers and roots", "What norms and activations are written by hand with."),
    ("reduction", "Reductions."),
    ("copy", "Copies, whatever asked for them."),
    ("contiguous", "Copies into dense memory."),
    ("clone", "Clones."),
    ("permute", "Changes of the order of axes."),
    ("slice and split", "Slices: one for each element in a Python loop."),
    ("index", "Indexing by tensors."),
    ("foreach", "Work over many tensors at once."),
    ("fused optimizer", "A fused optimizer step."),
    ("average of weights", "Moving averages of weights."),
    ("loss scale", "Updates of a loss scale."),
    ("non-maximum suppression", "Suppression of boxes, for each class or at once."),
    ("host tensor", "Tensors made from host data, and detached ones."),
)


_CAUTIONED = re.compile(r"\W+")


def slug(family: str) -> str:
    """A family's name as part of a feature's."""
    return _CAUTIONED.sub("_", family)


FEATURES: tuple[Feature, ...] = (
    *(
        Feature(f"operators.{slug(name)}_time", "% of the compute time", f"Time of the family: {name}.")
        for name in _TIMED
    ),
    *(Feature(f"operators.{slug(name)}_calls", "1 (log10(1 + x))", why) for name, why in _COUNTED),
    Feature("operators.calls", "1 (log10(1 + x))", "Operators called by Python or by the autograd engine."),
    Feature("operators.distinct", "% of calls", "Names that differ: loops repeat the same few."),
    Feature("operators.in_place_steps", "% of calls", "In-place arithmetic: optimizers, averages, gradient scans."),
    Feature("operators.cloned_activations", "1 (log10(1 + x))", "Of these, with a clone directly before."),
    Feature(
        "operators.filled_allocations", "% of allocations", "Fresh memory that is filled at once: a debug mode does."
    ),
    Feature(
        "operators.with_history", "% of calls", "Calls that autograd numbers: they save tensors for a backward pass."
    ),
    Feature("operators.history_unused", "% of calls", "The same in a step without any backward pass."),
    Feature("operators.forward_in_backward", "% of calls", "Forward operators inside a backward pass: recomputed."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    if not view.has_ops:
        return np.full((view.size, len(FEATURES)), NAN)
    window, took_ns, family, _ = view.work
    kinds = len(FAMILIES)
    time_ns = np.bincount(window * kinds + family, took_ns, minlength=view.size * kinds).reshape(view.size, kinds)
    calls = np.bincount(view.op_window * kinds + view.family, minlength=view.size * kinds).reshape(view.size, kinds)
    return table(
        FEATURES,
        **{f"{slug(name)}_time": pct(time_ns[:, families.number(name)], view.work_ns) for name in _TIMED},
        **{f"{slug(name)}_calls": log_count(calls[:, families.number(name)]) for name, _ in _COUNTED},
        calls=log_count(view.call_count),
        **_call_columns(view),
        filled_allocations=pct(_filled(view), calls[:, families.number("allocation")]),
    )


def _call_columns(view: View) -> dict[str, FloatArray]:
    """Columns about what Python or the autograd engine called, by name."""
    rows, window, count = view.call_rows, view.call_window, view.call_count
    names = np.sort(window.astype(np.int64) * len(view.trace.names) + view.trace.name[rows])
    distinct = names[np.append(True, names[1:] != names[:-1])] if len(names) else names
    in_place = view.marked(rows, Mark.IN_PLACE_ACTIVATION)
    cloned = np.zeros(len(rows), dtype=np.bool_)
    is_clone = view.call_family == families.number("clone")
    cloned[1:] = in_place[1:] & is_clone[:-1] & (window[1:] == window[:-1])
    tracked = (view.trace.sequence[rows] >= 0) & (view.timeline.forward_op[rows] < 0)
    with_history = view.sum(window, tracked)
    recomputed = view.marked(rows, Mark.FORWARD_ONLY) & _is_backward(view, rows)
    return {
        "distinct": pct(view.count(distinct // max(len(view.trace.names), 1)), count),
        "in_place_steps": pct(view.sum(window, view.marked(rows, Mark.IN_PLACE_STEP)), count),
        "cloned_activations": log_count(view.sum(window, cloned)),
        "with_history": pct(with_history, count),
        "history_unused": pct(with_history * ~_has_backward(view), count),
        "forward_in_backward": pct(view.sum(window, recomputed), count),
    }


def _is_backward(view: View, rows: np.ndarray) -> np.ndarray:
    """For each of `rows`, whether it runs below a node of the autograd graph."""
    nodes = np.zeros(len(view.trace) + 1, dtype=np.bool_)
    nodes[view.ops] = view.family == families.number("grouped by autograd")
    return nodes[view.outermost_op[rows]]


def _has_backward(view: View) -> np.ndarray:
    """For each window, whether its step has a backward pass."""
    is_backward = view.family == families.number("grouped by autograd")
    steps = view.windows.step[view.op_window[is_backward]]
    found = np.zeros(int(view.windows.step.max(initial=0)) + 1, dtype=np.bool_)
    found[steps] = True
    return found[view.windows.step]


def _filled(view: View) -> FloatArray:
    """Fills directly inside an allocation, by window."""
    fills = view.ops[view.family == families.number("fill")]
    inside = view.outer_family(fills) == families.number("allocation")
    return view.count(view.windows.of[fills[inside]])
