"""masked-window-as-full: attention within windows computed over all tokens, with a mask that takes the rest away.

Why it is slow: a dense mask saves nothing: all scores are computed and most are thrown away; the mask itself, tokens x
tokens, is read by every head.
Trace: an attention over 256 tokens or more with a mask of queries x keys that is the same for all sequences and heads.
That the mask stands for windows only the source can tell: it may be causal, or a bias.
Edit: the attention takes half of its time: what windows of half the tokens would; narrower ones save more.
Gate: masks that differ by head (biases), by sequence (padding), or from window to window (shifted windows, folded into
the batch already); `is_causal`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.attention_backends import Backend
from ..timeline.attention_calls import AttentionCall, attention_calls
from ..timeline.model import Timeline
from ..timeline.op_inputs import tensors
from ..timeline.select import count_per_step, events_of, in_typical_step
from ..timeline.sites import group_by_site
from ..trace.model import Dims
from .base import Candidate, FixKind, Pattern
from .measured_attention import shrunk

_LEAST_TOKENS = 256
_SHARE = 0.5
_ADDED = ("aten::add", "aten::add_", "aten::masked_fill", "aten::masked_fill_", "aten::where")


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that attends by a dense mask."""
    masked = [(call, mask) for call in attention_calls(timeline) if (mask := _dense_mask(timeline, call))]
    call_of = {call.anchor: call for call, _ in masked}
    mask_of = {call.anchor: mask for call, mask in masked}
    for anchors in group_by_site(timeline, np.array(sorted(call_of), dtype=np.int64)):
        mask = mask_of[int(anchors[0])]
        yield Candidate(
            what="attention computes all scores under one dense mask",
            remedy="computing only what the mask leaves",
            occurrences=tuple(shrunk(timeline, row, [(call_of[row].core, _SHARE)]) for row in anchors.tolist()),
            evidence=(
                Evidence(
                    "calls",
                    "attentions with a dense mask per step",
                    count_per_step(timeline, anchors),
                    "",
                    events_of(timeline, in_typical_step(timeline, anchors)),
                ),
                Evidence("mask", "mask", "x".join(map(str, mask)), "elements"),
            ),
            probability=0.6,
        )


def _dense_mask(timeline: Timeline, call: AttentionCall) -> Dims:
    """Sizes of a mask of queries x keys that all sequences and heads share; () if there is none."""
    if len(call.query) < 3 or len(call.key) < 3:
        return ()
    pairs = (call.query[-2], call.key[-2])
    if pairs[0] != pairs[1] or pairs[0] < _LEAST_TOKENS:
        return ()
    masks = [call.mask] if call.backend is not Backend.UNFUSED else _applied(timeline, call)
    return next((mask for mask in masks if mask[-2:] == pairs and prod(mask[:-2]) == 1), ())


def _applied(timeline: Timeline, call: AttentionCall) -> list[Dims]:
    """Sizes of what is added to the scores, or fills them."""
    trace = timeline.trace
    rows = [row for row in call.core.tolist() if trace.name_of(row) in _ADDED]
    return [dims for row in rows for _, dims in tensors(trace.inputs_of(row)) if dims]


PATTERN = Pattern(
    code="TAP606",
    slug="masked-window-as-full",
    title="Windowed attention over all tokens",
    fix=FixKind.ADVICE,
    find=find,
    needs=("shapes",),
    group="attention_bottleneck",
    stage=Stage.ARCHITECTURE,
)
