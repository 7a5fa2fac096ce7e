"""attention-weights-unused: `nn.MultiheadAttention` is asked for attention weights that nobody reads.

Why it is slow: `need_weights` is true unless told otherwise, and then the module computes attention in separate passes
over the scores, and their average over the heads on top; without, it calls the fused kernels.
Trace: a batched product, a softmax and a product inside `multi_head_attention_forward`, or inside the fast path's
`_native_multi_head_attention`; without frames, an average over the heads of a softmax's result behind the products.
Edit: one fused call in place of the passes, as `fused_call.py` models it, and the average goes.
Gate: on the CPU, dropout of the weights (the fused kernels there cannot drop weights) and the fast path, which does the
same passes either way (torch 2.13). That the weights are dropped only the source can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..findings import Evidence
from ..timeline.attention_passes import (
    Passes,
    attention_passes,
    average_of_weights,
    drops_weights,
    is_multihead_module,
    is_native_multihead,
    rows_of,
    scores_size,
)
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import backward_ops, count_per_step, events_of, in_typical_step
from ..trace.model import NONE, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .fused_call import fused_occurrence
from .occurrences import by_site


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that calls the module."""
    found = [one for one in attention_passes(timeline) if _is_ours(timeline, one)]
    if not found:
        return
    backward = backward_ops(timeline)
    sizes = {one.scores: scores_size(timeline, one) for one in found}
    for occurrences in by_site(timeline, (_occurrence(timeline, one, backward) for one in found)):
        anchors = np.array([occurrence.anchor for occurrence in occurrences])
        size = sizes[int(anchors[0])]
        yield Candidate(
            what="multi-head attention computes weights in separate passes",
            remedy="need_weights=False",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "calls",
                    "attentions with weights per step",
                    count_per_step(timeline, anchors),
                    "",
                    events_of(timeline, in_typical_step(timeline, anchors)),
                ),
                Evidence("weights", "weights of each", "x".join(map(str, size)), "elements"),
            ),
            probability=0.8,
        )


def _is_ours(timeline: Timeline, attention: Passes) -> bool:
    if is_native_multihead(timeline, attention):
        return not timeline.is_cpu_only
    return is_multihead_module(timeline, attention) and not (
        timeline.is_cpu_only and drops_weights(timeline, attention)
    )


def _occurrence(timeline: Timeline, attention: Passes, backward: IntArray) -> Occurrence:
    found = fused_occurrence(timeline, attention, rows_of(timeline, attention), backward)
    average = average_of_weights(timeline, attention)
    if average == NONE:
        return found
    return replace(found, edit=Edit.union([found.edit, Edit(removed_ops=np.array([average]))]))


PATTERN = Pattern(
    code="TAP605",
    slug="attention-weights-unused",
    title="Attention weights that nobody reads",
    fix=FixKind.SAFE,
    find=find,
    needs=("launches",),
    group="attention_bottleneck",
)
