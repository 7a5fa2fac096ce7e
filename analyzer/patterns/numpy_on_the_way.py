"""numpy-on-the-way: images are normalised and rearranged in numpy on their way to the model.

Why it is slow: numpy divides a `uint8` image in float64, writes a whole new array for each operator, and does so on
one core; often for all of a frame of which only crops are used.
Trace: a function that makes a tensor of a numpy array (`from_numpy`, `as_tensor`, `tensor`) and before that spends its
own time, which numpy's operators leave no events for, and calls of numpy that cast, transpose and copy.
Edit: the function keeps what the same costs in float32. Measured with torch 2.13 and numpy 2.4 on one core: 8 of 14 ns
per element. Where it takes over 60 ns per element that reaches torch, whole frames are converted that are cropped
later: cropping first left 24 % of the time.
Gate: functions whose numpy calls compute something (`roll`, `where`, `random`, ...): that is an augmentation, not a
conversion; conversions that take under 2 % of the step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_among, is_named
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.python_work import caller_of, frames_named, is_within_step
from ..timeline.select import count_per_step, events_of, in_typical_step, inside, outermost, value_per_step
from ..timeline.sites import SiteFinder, group_by_site, is_library_frame
from ..trace.model import NONE, Category, FloatArray, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_INTO_TORCH = re.compile(r"^<built-in method (from_numpy|as_tensor|tensor|asarray) of type object")
_NUMPY = re.compile(
    r"(^|/)numpy/|of numpy\.|^<built-in function (ascontiguousarray|asarray|array|asanyarray|concatenate)>"
)
_CONVERSION = re.compile(
    r"^<built-in (method|function) (astype|transpose|reshape|copy|swapaxes|ravel|flatten|squeeze|view|clip|repeat"
    r"|ascontiguousarray|array|asarray|asanyarray|concatenate)\b"
    r"|: (transpose|reshape|swapaxes|squeeze|ravel|expand_dims|[hvd]?stack|concatenate|moveaxis|rollaxis|linspace|clip"
    r"|flip|fliplr|flipud|tile|repeat|broadcast_to|normalize_axis_tuple|atleast_\dd|full|ones|zeros|\w*_dispatcher"
    r"|_wrapfunc|_wrapit|_clip|ndim|shape|size|isscalar)$"
)
_NOTICEABLE_SHARE = 0.02
_LEFT_NS_PER_ELEMENT = 8.0
_LEFT_SHARE = 0.55
_LEFT_SHARE_OF_FRAMES = 0.25
_FRAMES_NS_PER_ELEMENT = 60.0
"""What it takes, per element that reaches torch, to convert much more than that."""
_MOST_LEFT = 0.8
"""Above it numpy does no more than torch would."""


@dataclass(frozen=True, slots=True)
class _Conversions:
    """Functions that convert, one of each execution. Arrays have shape (functions,)."""

    frames: IntArray
    entries: IntArray
    """The last call in each that makes a tensor."""
    numpy_ns: FloatArray
    elements: FloatArray
    """Of the tensors made; 0 where sizes were not recorded."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that converts images in numpy."""
    found = _conversions(timeline)
    if found is None:
        return
    for anchors in group_by_site(timeline, found.entries):
        at = np.searchsorted(found.entries, anchors)
        frames, numpy_ns, elements = found.frames[at], found.numpy_ns[at], found.elements[at]
        total_ns = float(numpy_ns.sum())
        left_ns = _left_ns(total_ns, float(elements.sum()))
        numpy_us = value_per_step(timeline, frames, numpy_ns / 1000)
        if left_ns > _MOST_LEFT * total_ns or numpy_us < _NOTICEABLE_SHARE * timeline.step_us:
            continue
        factor = 1.0 - (total_ns - left_ns) / float(timeline.trace.dur_ns[frames].sum())
        yield Candidate(
            what="images are converted in numpy on their way to torch",
            remedy="converting no more than is used, in float32",
            occurrences=tuple(
                Occurrence(anchor, Edit(scales=(Scale(np.array([frame]), factor),)), np.array([frame]))
                for anchor, frame in zip(anchors.tolist(), frames.tolist(), strict=True)
            ),
            evidence=(
                Evidence(
                    "conversions",
                    "arrays converted per step",
                    count_per_step(timeline, anchors),
                    "",
                    events_of(timeline, in_typical_step(timeline, anchors)),
                ),
                Evidence("numpy", "time of numpy in the function, per step", round(numpy_us / 1000, 3), "ms"),
                Evidence("elements", "elements that reach torch per step", _per_step(timeline, frames, elements), ""),
            ),
            cost_us_per_step=numpy_us,
            probability=0.8,
        )


def _left_ns(total_ns: float, elements: float) -> float:
    """What is left of numpy's time."""
    of_frames = total_ns > _FRAMES_NS_PER_ELEMENT * elements > 0
    return max(_LEFT_NS_PER_ELEMENT * elements, (_LEFT_SHARE_OF_FRAMES if of_frames else _LEFT_SHARE) * total_ns)


def _per_step(timeline: Timeline, frames: IntArray, elements: FloatArray) -> float | str:
    return value_per_step(timeline, frames, elements) if elements.any() else "not recorded"


def _conversions(timeline: Timeline) -> _Conversions | None:
    numpy = frames_named(timeline, _NUMPY)
    entries = frames_named(timeline, _INTO_TORCH) if len(numpy) else numpy
    if not len(entries):
        return None
    finder = SiteFinder(timeline)
    executions = {found for row in entries.tolist() if isinstance(found := finder.function(row), int) and found != NONE}
    functions = np.array(sorted(executions), dtype=np.int64)
    functions = outermost(timeline, functions[is_within_step(timeline, functions)])
    owner = inside(timeline, entries, functions)
    owned = owner != NONE
    # Later entries overwrite earlier ones.
    last = np.full(len(functions), NONE, dtype=np.int64)
    last[owner[owned]] = entries[owned]
    numpy_ns = _numpy_ns(timeline, numpy, functions)
    elements = np.bincount(owner[owned], _elements(timeline, entries[owned]), len(functions)).astype(np.float64)
    kept = (last != NONE) & (numpy_ns > 0)
    order = np.flatnonzero(kept)[np.argsort(last[kept])]
    return _Conversions(functions[order], last[order], numpy_ns[order], elements[order])


def _numpy_ns(timeline: Timeline, numpy: IntArray, functions: IntArray) -> FloatArray:
    """Time of numpy in each function: its calls, and the own time of the frames that call it only to convert.

    0 for a function that itself has numpy compute something.
    """
    trace, tree = timeline.trace, timeline.tree
    caller = caller_of(timeline, numpy)
    is_top = (caller != NONE) & ~is_named(trace, np.maximum(caller, 0), lambda name: _NUMPY.search(name))
    numpy, caller = numpy[is_top], caller[is_top]
    converts = is_named(trace, numpy, _CONVERSION.search)
    computing = distinct(caller[~converts])
    callers = distinct(np.concatenate([caller, functions]))
    callers = callers[~is_among(callers, computing)]
    callers = callers[~is_named(trace, callers, is_library_frame) & (trace.cat[callers] == Category.PYTHON_FUNCTION)]
    spent = np.concatenate([callers, numpy[converts]])
    length = np.concatenate([tree.self_ns[callers], trace.dur_ns[numpy[converts]]])
    owner = inside(timeline, spent, functions)
    total = np.bincount(owner[owner != NONE], weights=length[owner != NONE], minlength=len(functions))
    return np.where(is_among(functions, computing), 0.0, total)


def _elements(timeline: Timeline, entries: IntArray) -> FloatArray:
    """Elements of the tensor that each call makes, from the operator inside it; 0 where not recorded."""
    trace, tree = timeline.trace, timeline.tree
    shapes = [
        next((shape for child in tree.children(row) if (shape := trace.inputs_of(int(child)).shape(0))), ())
        for row in entries.tolist()
    ]
    return np.array([prod(shape) if shape else 0 for shape in shapes], dtype=np.float64)


PATTERN = Pattern(
    code="TAP111",
    slug="numpy-on-the-way",
    title="Images converted in numpy",
    fix=FixKind.SAFE,
    find=find,
    needs=("stack",),
    group="data and host",
    stage=Stage.IMPLEMENTATION,
)
