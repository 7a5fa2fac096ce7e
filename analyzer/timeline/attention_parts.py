"""What each operator round an attention does for it."""

from __future__ import annotations

import re
from enum import IntEnum

from ..trace.model import Dims
from .model import Timeline


class Part(IntEnum):
    """What an operator does for an attention."""

    COMPUTE = 0
    """The products and the softmax, or the fused kernel."""
    COPIES = 1
    """Tensors written anew in another order or type."""
    MASKS = 2
    """Making and applying masks and biases."""
    CACHE = 3
    """Putting keys and values into a cache, or joining them with it."""
    COMMUNICATION = 4
    OTHER = 5
    """Scales, rotations, norms of the heads."""


_PART_OF_OPERATOR = (
    (re.compile(r"^c10d::|nccl|all_?reduce|all_?gather|all_?to_?all|reduce_?scatter|^gloo"), Part.COMMUNICATION),
    (re.compile(r"masked_fill|aten::where|aten::(eq|ne|lt|le|gt|ge)_?$|tri[lu]|logical_|bitwise_"), Part.MASKS),
    (re.compile(r"aten::(full|ones|zeros|arange|new_\w+|\w+_like|index|index_select|embedding)$"), Part.MASKS),
    (re.compile(r"index_copy|index_put|slice_scatter|aten::scatter"), Part.CACHE),
    (
        re.compile(
            r"aten::(contiguous|clone|copy_|reshape|flatten|to|_to_copy|repeat|repeat_interleave|cat|stack|pad"
            r"|constant_pad_nd|view_as_complex|_unsafe_view|_reshape_copy|type_as|float|half|bfloat16|expand_as|roll)$"
        ),
        Part.COPIES,
    ),
)


def part_of(timeline: Timeline, row: int, key: Dims = ()) -> Part:
    """What an operator does; `key` are the sizes of the attention's keys, where they are known."""
    trace = timeline.trace
    name = trace.name_of(row)
    if name == "aten::cat" and _joins_cache(trace.inputs_of(row).dims, key):
        return Part.CACHE
    return next((part for pattern, part in _PART_OF_OPERATOR if pattern.search(name)), Part.OTHER)


def _joins_cache(dims: tuple[Dims | tuple[Dims, ...], ...], key: Dims) -> bool:
    """Whether `cat` joins kept keys with new ones: two tensors of four dimensions whose lengths make the keys'."""
    parts = [part for part in (dims[0] if dims else ()) if isinstance(part, tuple)]
    if len(parts) != 2 or len(parts[0]) != 4 or len(parts[1]) != 4 or len(key) < 2:
        return False
    differs = [k for k in range(4) if parts[0][k] != parts[1][k]]
    return len(differs) == 1 and parts[0][differs[0]] + parts[1][differs[0]] == key[-2]


def part_on_scores(timeline: Timeline, row: int) -> Part:
    """What an operator between the products does to the scores: a tensor added to them is a mask or a bias."""
    name = timeline.trace.name_of(row)
    if name in ("aten::add", "aten::add_", "aten::sub"):
        return Part.MASKS if timeline.trace.inputs_of(row).shape(1) else Part.OTHER
    return part_of(timeline, row)
