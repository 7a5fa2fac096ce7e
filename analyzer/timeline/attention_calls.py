"""Every attention of the steady steps, with the operators round it: what they do, and what they take.

An attention's neighbourhood is what its layer does between the projections: from behind the last projection (or
convolution, norm or activation) before it to before the next one, and never out of the module that calls it, nor out
of the step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ..trace.model import NONE, Category, Dims, Int8Array, IntArray
from .attention_backends import FUSED, Backend, backends_of
from .attention_parts import Part, part_of, part_on_scores
from .attention_passes import Passes, attention_passes, neighbours, on_scores, scores_size
from .columns import distinct, is_among
from .edit import no_rows
from .memo import once
from .model import KernelClass, Phase, Timeline
from .select import inside, launched_by, outermost, steady

_BY_LENGTH = re.compile(r"flash_attn|_attention_forward|xformers")
"""Operators that take (batch, tokens, heads, width); the others take heads before tokens."""
_COPIES_INSIDE = ("aten::contiguous", "aten::clone", "aten::copy_")
_COPY_KERNELS = (KernelClass.COPY, KernelClass.LAYOUT, KernelClass.MEMCPY_DTOD)

_BOUNDARY = re.compile(
    r"aten::(linear|addmm|mm|conv\w*|_convolution|layer_norm|batch_norm|group_norm|relu_?|gelu|silu_?|embedding"
    r"|max_pool2d|avg_pool2d|cross_entropy\w*|upsample\w*|grid_sampler\w*|mse_loss)$"
)
_LEAST_AXES = 2
"""Tokens and width. What has fewer is no attention's operand, whatever its operator is called: sizes are unknown."""
_REACH_BEFORE, _REACH_AFTER = 24, 12


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """One execution of an attention."""

    anchor: int
    """The fused operator, or the first of the two products."""
    backend: Backend
    query: Dims
    """(..., heads, tokens, width); (batch * heads, tokens, width) where the program folded them; () if unknown,
    as the next two then are."""
    key: Dims
    value: Dims
    mask: Dims
    """Sizes of the mask that the fused call is given; () if none, or unknown."""
    core: IntArray
    """Operators of the attention itself, in time order: the fused one, or the two products and what lies between."""
    ops: IntArray
    """Operators of the neighbourhood, the core included, in time order; they do not overlap."""
    part: Int8Array
    """`Part` of each of `ops`."""

    @property
    def flops(self) -> float:
        """Multiplications and additions of the two products; NaN if sizes are unknown."""
        if not self.query or not self.key or not self.value:
            return float("nan")
        return 2.0 * prod(self.query[:-1]) * self.key[-2] * (self.query[-1] + self.value[-1])


@once
def attention_calls(timeline: Timeline) -> list[AttentionCall]:
    """All attentions of the forward passes of the steady steps, in time order."""
    cores = sorted(_cores(timeline), key=lambda core: int(core.core[0]))
    if not cores:
        return []
    anchors = np.array([core.anchor for core in cores])
    around = neighbours(timeline, anchors)
    place = {row: at for at, row in enumerate(around.tolist())}
    # Cores that are not among their own neighbours lie inside other operators in parts: there is nothing round them.
    cores = [core for core in cores if int(core.core[0]) in place and int(core.core[-1]) in place]
    taken = np.array(sorted(place[int(core.core[0])] for core in cores))
    found: list[AttentionCall] = []
    free = 0
    for core in cores:
        before, after = _bounds(timeline, core, around, place, taken, free)
        found.append(_with_neighbours(timeline, core, around, before, after))
        free = after
    return found


def _cores(timeline: Timeline) -> Iterator[AttentionCall]:
    trace = timeline.trace
    rows = trace.rows_named(FUSED)
    rows = rows[(trace.cat[rows] == Category.CPU_OP) & (timeline.phase[rows] != Phase.BACKWARD)]
    fused = outermost(timeline, steady(timeline, rows))
    backends = backends_of(timeline, fused)
    for row, backend in zip(fused.tolist(), backends, strict=True):
        inputs = trace.inputs_of(row)
        query, key, value, mask = (inputs.shape(k) for k in range(4))
        if _BY_LENGTH.search(trace.name_of(row)):
            query, key, value = (_heads_first(dims) for dims in (query, key, value))
            mask = ()
        if min(len(query), len(key), len(value)) < _LEAST_AXES:
            query = key = value = ()
        core = np.array([row])
        yield AttentionCall(row, backend, query, key, value, mask, core, core, np.zeros(1, dtype=np.int8))
    for passes in attention_passes(timeline):
        yield _unfused(timeline, passes)


def _heads_first(dims: Dims) -> Dims:
    return (dims[0], dims[2], dims[1], dims[3]) if len(dims) == 4 else dims


def _unfused(timeline: Timeline, passes: Passes) -> AttentionCall:
    size = scores_size(timeline, passes)
    query, key = (timeline.trace.inputs_of(passes.scores).shape(k) for k in (0, 1))
    value = timeline.trace.inputs_of(passes.values).shape(1)
    # An equation's operands come in an order of its own: their width is not known then.
    width = query[-1] if size and prod(query[:-1] or (0,)) == prod(size[:-1]) else 0
    made = value[-1] if value and width else width
    sizes = (
        ((*size[:-1], width), (*size[:-2], size[-1], width), (*size[:-2], size[-1], made))
        if len(size) >= _LEAST_AXES and width and key
        else ((), (), ())
    )
    rows = [passes.scores, *passes.between.tolist(), passes.values]
    scores = {passes.scores, passes.softmax, passes.values}
    masks = set(on_scores(timeline, passes).tolist())
    part = [
        Part.COMPUTE if row in scores else part_on_scores(timeline, row) if row in masks else part_of(timeline, row)
        for row in rows
    ]
    core = np.array(rows, dtype=np.int64)
    return AttentionCall(passes.scores, Backend.UNFUSED, *sizes, (), core, core, np.array(part, dtype=np.int8))


def _bounds(
    timeline: Timeline, core: AttentionCall, around: IntArray, place: dict[int, int], taken: IntArray, free: int
) -> tuple[int, int]:
    """Where the neighbourhood begins and ends in `around`; it may begin at `free`, where the one before ended."""
    trace = timeline.trace
    first, last = place[int(core.core[0])], place[int(core.core[-1])]
    earliest = max(free, first - _REACH_BEFORE)
    behind = int(np.searchsorted(taken, last, side="right"))
    latest = min(int(taken[behind]) if behind < len(taken) else len(around), last + 1 + _REACH_AFTER)
    start_ns, end_ns = _scope(timeline, core.anchor)

    def belongs(row: int) -> bool:
        is_near = trace.thread[row] == trace.thread[core.anchor] and start_ns <= trace.ts_ns[row] < end_ns
        is_near &= timeline.steps.of[row] == timeline.steps.of[core.anchor]
        return bool(is_near) and not _BOUNDARY.search(trace.name_of(row))

    before, after = first, last + 1
    while before > earliest and belongs(int(around[before - 1])):
        before -= 1
    while after < latest and belongs(int(around[after])):
        after += 1
    return before, after


def _with_neighbours(
    timeline: Timeline, core: AttentionCall, around: IntArray, before: int, after: int
) -> AttentionCall:
    ops = around[before:after]
    own = dict(zip(core.core.tolist(), core.part.tolist(), strict=True))
    part = [own[row] if row in own else part_of(timeline, row, core.key) for row in ops.tolist()]
    return replace(core, ops=ops, part=np.array(part, dtype=np.int8))


def _scope(timeline: Timeline, row: int) -> tuple[int, int]:
    """Begin and end of the module that calls an attention; all time where no modules were recorded."""
    trace = timeline.trace
    module = enclosing_module(timeline, row)
    if module == NONE:
        return (0, int(np.iinfo(np.int64).max))
    return int(trace.ts_ns[module]), int(trace.ts_ns[module] + trace.dur_ns[module])


def enclosing_module(timeline: Timeline, row: int) -> int:
    """The innermost `nn.Module` event round a row; NONE if none was recorded."""
    tree = timeline.tree
    frame = int(tree.python[row])
    while frame != NONE and not timeline.trace.name_of(frame).startswith("nn.Module: "):
        outer = int(tree.parent[frame])
        frame = int(tree.python[outer]) if outer != NONE else NONE
    return frame


def part_times_us(timeline: Timeline, calls: list[AttentionCall]) -> np.ndarray:
    """Forward time of each call's neighbourhood by part, shape (calls, parts), in µs.

    With a device its kernels count: copies that a fused call or a product makes of its operands are copies. On the
    CPU the operators' own time does, the copies inside them taken off.
    """
    times = np.zeros((len(calls), len(Part)))
    if not calls:
        return times
    ops = np.concatenate([call.ops for call in calls])
    part = np.concatenate([call.part for call in calls]).astype(np.int64)
    owner = np.repeat(np.arange(len(calls)), [len(call.ops) for call in calls])
    us = timeline.trace.dur_ns / 1000.0
    if timeline.is_cpu_only:
        copies = outermost(timeline, steady(timeline, timeline.trace.rows_named(_COPIES_INSIDE)))
        holder = inside(timeline, copies, ops)
        copies, holder = copies[holder != NONE], holder[holder != NONE]
        copied = np.bincount(holder, weights=us[copies], minlength=len(ops))
        np.add.at(times, (owner, part), np.maximum(us[ops] - copied, 0.0))
        np.add.at(times, (owner, np.full(len(ops), Part.COPIES)), np.minimum(copied, us[ops]))
        return times
    launched = launched_by(timeline, ops)
    kernels = np.concatenate([no_rows(), *launched])
    counts = [len(rows) for rows in launched]
    owner, part = np.repeat(owner, counts), np.repeat(part, counts)
    kind = timeline.kernel_class[kernels]
    part[is_among(kind, _COPY_KERNELS) & (part == Part.COMPUTE)] = Part.COPIES
    part[kind == KernelClass.COMMUNICATION] = Part.COMMUNICATION
    np.add.at(times, (owner, part), us[kernels])
    return times


def part_rows(timeline: Timeline, calls: list[AttentionCall], part: Part) -> list[IntArray]:
    """The operators of each call that belong to a part; for copies also those inside its products and fused calls."""
    own = [call.ops[call.part == part] for call in calls]
    if part is not Part.COPIES or not calls:
        return own
    ops = np.concatenate([call.ops for call in calls])
    owner = np.repeat(np.arange(len(calls)), [len(call.ops) for call in calls])
    copies = outermost(timeline, steady(timeline, timeline.trace.rows_named(_COPIES_INSIDE)))
    holder = inside(timeline, copies, ops)
    copies, holder = copies[holder != NONE], owner[holder[holder != NONE]]
    return [distinct(np.concatenate([rows, copies[holder == k]])) for k, rows in enumerate(own)]
