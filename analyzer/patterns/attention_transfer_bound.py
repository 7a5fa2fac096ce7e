"""attention-transfer-bound: most of what attention takes is no attention: copies, masks, caches, communication.

Why it is slow: between the projections only the two products and the softmax compute; tensors written anew in another
order, masks made and added, keys joined with a cache, and waits for other ranks move data round them.
Trace: what each attention layer does between its projections, by part (`timeline/attention_calls.py`); it is reported
where computing takes under 0.6 of a layer's time.
Edit: the largest part that is no computation goes.
Gate: layers whose parts take next to nothing of the step; neighbourhoods that only hold a call in a compiled program.
What lies between the two products of an attention in separate passes counts as computing: it goes with fusing them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..findings import Evidence
from ..timeline.attention import calls_by_layer
from ..timeline.attention_calls import AttentionCall, attention_calls, part_rows, part_times_us
from ..timeline.attention_parts import Part
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import events_of, in_typical_step, launched_by
from ..timeline.sites import group_by_site
from ..trace.model import FloatArray, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

LEAST_COMPUTE_RATIO = 0.6
_NOTICEABLE_SHARE = 0.005
_WORDS = {
    Part.COPIES: "copies",
    Part.MASKS: "masks and biases",
    Part.CACHE: "the cache of keys and values",
    Part.COMMUNICATION: "communication",
    Part.OTHER: "scales and other pointwise work",
}
_REMEDIES = {
    Part.COPIES: "attention without the copies",
    Part.MASKS: "masks made once, or none",
    Part.CACHE: "a cache written in place",
    Part.COMMUNICATION: "communication beside the computation",
    Part.OTHER: "fusing the pointwise work",
}


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function whose attention computes little of its time."""
    calls = [_with_core_as_compute(call) for call in attention_calls(timeline)]
    if not calls:
        return
    times = part_times_us(timeline, calls)
    place = {call.anchor: k for k, call in enumerate(calls)}
    steps = max(len(timeline.steps.steady), 1)
    moving = [call.anchor for layer in calls_by_layer(timeline, calls) if _moves(times, place, layer) for call in layer]
    for anchors in group_by_site(timeline, np.array(sorted(moving), dtype=np.int64)):
        members = [place[row] for row in anchors.tolist()]
        spent = times[members].sum(axis=0) / steps
        if spent.sum() < _NOTICEABLE_SHARE * timeline.step_us:
            continue
        yield _candidate(timeline, [calls[k] for k in members], spent)


def _with_core_as_compute(call: AttentionCall) -> AttentionCall:
    """Scales, masks and dropout between the products are another finding's, which fuses the passes."""
    part = np.where(np.isin(call.ops, call.core), Part.COMPUTE, call.part).astype(np.int8)
    return replace(call, part=part)


def _moves(times: FloatArray, place: dict[int, int], layer: list[AttentionCall]) -> bool:
    """Whether a layer computes for too little of its time."""
    spent = times[[place[call.anchor] for call in layer]].sum(axis=0)
    return bool(spent[Part.COMPUTE] < LEAST_COMPUTE_RATIO * spent.sum())


def _candidate(timeline: Timeline, calls: list[AttentionCall], spent: FloatArray) -> Candidate:
    total = float(spent.sum())
    others = np.where(np.arange(len(spent)) == Part.COMPUTE, 0.0, spent)
    largest = Part(int(np.argmax(others)))
    moving = part_rows(timeline, calls, largest)
    occurrences = tuple(
        Occurrence(call.anchor, Edit(removed_ops=rows), _cost_rows(timeline, call))
        for call, rows in zip(calls, moving, strict=True)
    )
    cited = in_typical_step(timeline, np.sort(np.concatenate([call.ops for call in calls])))
    shares = [
        Evidence(part.name.lower(), f"{_WORDS[part]} per step", round(float(spent[part]) / 1000, 4), "ms")
        for part in sorted(_WORDS, key=lambda part: -spent[part])
        if spent[part] > 0
    ]
    return Candidate(
        what=f"attention is bound by {_WORDS[largest]}",
        remedy=_REMEDIES[largest],
        occurrences=occurrences,
        evidence=(
            Evidence(
                "ratio",
                "computing over all of attention",
                round(float(spent[Part.COMPUTE]) / total, 2),
                "",
                events_of(timeline, cited),
            ),
            *shares,
        ),
        probability=0.9,
    )


def _cost_rows(timeline: Timeline, call: AttentionCall) -> IntArray:
    """What the neighbourhood takes: its operators on the CPU, their kernels on a device."""
    return call.ops if timeline.is_cpu_only else np.concatenate(launched_by(timeline, call.ops))


PATTERN = Pattern(
    code="TAP612",
    slug="attention-transfer-bound",
    title="Attention that moves more than it computes",
    fix=FixKind.ADVICE,
    find=find,
    needs=("launches",),
    group="attention_bottleneck",
)
