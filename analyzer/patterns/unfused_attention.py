"""unfused-attention: softmax(q kᵀ) v written as separate operators.

Why it is slow: the scores, an N x N matrix per head, are written to memory and read back by the scale, the mask, the
softmax and the second product; the fused kernel keeps them on chip.
Trace: a batched product, then only pointwise operators, then a softmax of that product's result, then a batched
product that takes the softmax's result; no fused attention operator round them.
Edit: one fused call in place of the passes, as `fused_call.py` models it.
Gate: `scaled_dot_product_attention`'s own math fallback (another pattern); products with a plain matrix (a
classifier's weights); `nn.MultiheadAttention`'s own slow path (attention-weights-unused); on the CPU, dropout of the
attention weights, which the fused kernels there cannot do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.attention_passes import (
    Passes,
    attention_passes,
    drops_weights,
    is_multihead_module,
    rows_of,
    scores_size,
)
from ..timeline.model import Timeline
from ..timeline.select import (
    backward_ops,
    count_per_step,
    events_of,
    in_typical_step,
)
from ..timeline.sites import group_by_site
from .base import Candidate, FixKind, Pattern
from .fused_call import fused_occurrence


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that computes attention in separate passes."""
    attentions = {one.scores: one for one in attention_passes(timeline) if _is_ours(timeline, one)}
    if not attentions:
        return
    scores = np.array(sorted(attentions))
    passes_of = {row: rows_of(timeline, attention) for row, attention in attentions.items()}
    backward = backward_ops(timeline)
    for anchors in group_by_site(timeline, scores):
        occurrences = tuple(
            fused_occurrence(timeline, attentions[row], passes_of[row], backward) for row in anchors.tolist()
        )
        passes = np.sort(np.concatenate([passes_of[row] for row in anchors.tolist()]))
        tokens = scores_size(timeline, attentions[int(anchors[0])])
        evidence = [
            Evidence(
                "passes",
                "operators of attention per step",
                count_per_step(timeline, passes),
                "",
                events_of(timeline, in_typical_step(timeline, passes)),
            )
        ]
        if tokens:
            evidence.append(Evidence("scores", "scores written and read back", "x".join(map(str, tokens)), "elements"))
        yield Candidate(
            what="attention runs as three passes",
            remedy="the fused call",
            occurrences=occurrences,
            evidence=tuple(evidence),
            probability=0.95 if tokens else 0.8,
        )


def _is_ours(timeline: Timeline, attention: Passes) -> bool:
    """Not `nn.MultiheadAttention`'s own slow path, nor what the CPU's fused kernels cannot do: drop weights out."""
    if is_multihead_module(timeline, attention):
        return False
    return not (timeline.is_cpu_only and drops_weights(timeline, attention))


PATTERN = Pattern(
    code="TAP601",
    slug="unfused-attention",
    title="Attention in separate passes",
    fix=FixKind.SAFE,
    find=find,
    needs=("launches",),
    group="attention_bottleneck",
)
