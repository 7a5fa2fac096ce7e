"""sdpa-math-fallback: `scaled_dot_product_attention` falls back to separate passes.

Why it is slow: no fused kernel takes the inputs as they come, so the call multiplies, writes the scores to memory,
takes their softmax and multiplies again, as code from before it did.
Trace: `aten::_scaled_dot_product_attention_math`. What the fused kernels refuse shows in the sizes, strides and types:
three or five dimensions, a mask of three, fewer heads of keys than of queries, a last dimension that is not dense, a
mask of another type, values of another width.
Edit: on a device the call's kernels take what one fused kernel would (`fused_call.py`). On the CPU the call takes 0.85
of its time up to 32 keys, 0.6 up to 127 and 0.4 from there (torch 2.13, one thread, heads of 16 to 64: 0.84 at 16 keys,
0.61 and 0.33 at 49 and 64, 0.31 to 0.38 from 196 to 1024); its backward all of it, 0.9 and 0.75 (1.03, 0.57 to 0.9,
0.46 to 0.86).
Gate: dropout of the weights on the CPU, which no fused kernel there can do; a reason that no edit removes is only told.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.attention_backends import Backend
from ..timeline.attention_calls import AttentionCall, attention_calls
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.select import backward_of, backward_ops, count_per_step, events_of, in_typical_step, launched_by
from ..trace.model import Dims, IntArray, OpInputs
from .base import Candidate, FixKind, Occurrence, Pattern
from .fused_call import FUSED_BACKWARD_PRODUCTS, fused_us
from .occurrences import by_site

_DROPOUT, _MASK = 4, 3
_CPU_SHARES = ((128, 0.4, 0.75), (33, 0.6, 0.9), (0, 0.85, 1.0))
"""Keys from which they hold, share of the forward and of the backward that the fused kernel takes."""
_WORDS = {3: "three dimensions", 5: "five dimensions", 6: "six dimensions"}


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function whose fused call is not fused."""
    if not len(timeline.trace.rows_named(("aten::_scaled_dot_product_attention_math",))):
        return
    calls = [call for call in attention_calls(timeline) if call.backend is Backend.MATH and _may_fuse(timeline, call)]
    of_anchor = {call.anchor: call for call in calls}
    backward = backward_ops(timeline)
    for occurrences in by_site(timeline, (_occurrence(timeline, call, backward) for call in calls)):
        call = of_anchor[occurrences[0].anchor]
        anchors = np.array([one.anchor for one in occurrences])
        yield Candidate(
            what="scaled_dot_product_attention falls back to separate passes",
            remedy="a fused kernel",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "calls",
                    "calls without a fused kernel per step",
                    count_per_step(timeline, anchors),
                    "",
                    events_of(timeline, in_typical_step(timeline, anchors)),
                ),
                Evidence("reason", "what the fused kernels refuse", reason(timeline, call), ""),
                Evidence("query", "queries", "x".join(map(str, call.query)) or "unknown", ""),
                Evidence("mask", "mask", "x".join(map(str, call.mask)) or "none", ""),
            ),
            probability=0.95,
        )


def _may_fuse(timeline: Timeline, call: AttentionCall) -> bool:
    dropout = timeline.trace.inputs_of(call.anchor).value(_DROPOUT)
    return not (timeline.is_cpu_only and dropout not in ("", "0.", "0", "0.0"))


def reason(timeline: Timeline, call: AttentionCall) -> str:
    """Why no fused kernel takes a call, as its recorded inputs tell."""
    inputs = timeline.trace.inputs_of(call.anchor)
    query, key, value, mask = call.query, call.key, call.value, call.mask
    if not query:
        return "unknown: no sizes recorded"
    if len(query) != 4:
        return _WORDS.get(len(query), f"{len(query)} dimensions")
    if len(mask) not in (0, 2, 4):
        return "a mask of three dimensions"
    if key[:2] != query[:2] or value[:2] != query[:2]:
        is_shared = key[:1] == query[:1] and query[1] % max(key[1], 1) == 0 and key[:2] == value[:2]
        return "fewer heads of keys than of queries" if is_shared else "keys and values of another batch"
    if (sparse := _sparse_operand(inputs)) is not None:
        return f"the last dimension of {sparse} is not dense"
    if value[-1] != query[-1]:
        return "values of another width"
    types = [inputs.dtype(k) for k in (0, _MASK)]
    if mask and types[1] not in ("bool", "", types[0]):
        return "a mask of another type"
    if types[0] == "double" and not timeline.is_cpu_only:
        return "double precision"
    return "a mask that takes gradients, or fused kernels that are switched off" if mask else "unknown"


def _sparse_operand(inputs: OpInputs) -> str | None:
    for argument, name in enumerate(("queries", "keys", "values")):
        strides: Dims = inputs.stride(argument)
        if strides and strides[-1] != 1:
            return name
    return None


def _occurrence(timeline: Timeline, call: AttentionCall, backward: IntArray) -> Occurrence:
    anchor = np.array([call.anchor])
    (caused,) = backward_of(timeline, anchor, backward)
    if timeline.is_cpu_only:
        keys = max(call.key[-2], 0) if len(call.key) > 1 else 0
        share, backward_share = next((f, b) for least, f, b in _CPU_SHARES if keys >= least)
        edit = Edit(scales=(Scale(anchor, share), Scale(caused, backward_share)))
        return Occurrence(call.anchor, edit, np.sort(np.concatenate([anchor, caused])))
    (launched,) = launched_by(timeline, anchor)
    backward_launched = np.concatenate([launched[:0], *launched_by(timeline, caused)])
    dtype = timeline.trace.inputs_of(call.anchor).dtype(0)
    scales = [
        Scale(rows, _share(timeline, rows, fused_us(timeline, rows, call.flops, dtype, products)))
        for rows, products in ((launched, 1.0), (backward_launched, FUSED_BACKWARD_PRODUCTS))
        if len(rows)
    ]
    return Occurrence(call.anchor, Edit(scales=tuple(scales)), np.concatenate([launched, backward_launched]))


def _share(timeline: Timeline, rows: IntArray, wanted_us: float) -> float:
    took_us = float(timeline.trace.dur_ns[rows].sum()) / 1000.0
    return round(min(wanted_us / took_us, 1.0), 2) if took_us > 0 else 1.0


PATTERN = Pattern(
    code="TAP602",
    slug="sdpa-math-fallback",
    title="Fused attention that is not fused",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes",),
    group="attention_bottleneck",
)
