"""padding-waste: most of what attention and its layers compute is padding.

Why it is slow: sequences of different lengths are padded to the longest (or to a fixed length), and padded tokens go
through every layer like real ones; in attention they count twice.
Trace: the share of real tokens, recorded by the program, under 0.7. Without it a mask with one row for each
sequence says that there is padding, not how much: a possibility that the source must confirm.
Edit: attention takes the square of the share of real tokens, the layers on tensors of (sequences, tokens, width) the
share itself: what packing or nested tensors would compute. Batches of like lengths come close to it.
Gate: masks that are the same for all sequences; models without masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.attention_calls import AttentionCall, attention_calls
from ..timeline.edit import Edit
from ..timeline.model import Phase, Timeline
from ..timeline.op_inputs import of_each
from ..timeline.select import outermost, steady
from ..timeline.sites import group_by_site
from ..trace.model import Category, IntArray, OpInputs
from .base import Candidate, FixKind, Occurrence, Pattern
from .measured_attention import MeasuredLayer, measured_layers, shrunk

LEAST_VALID_SHARE = 0.7
_TOKENWISE = (
    "aten::linear",
    "aten::addmm",
    "aten::layer_norm",
    "aten::gelu",
    "aten::relu",
    "aten::silu",
    "aten::add",
    "aten::dropout",
)
_WHAT, _REMEDY = "attention and its layers compute padding", "batches of like lengths, or nested tensors"


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for the layers that were measured; else a possibility for each function that attends by a mask."""
    measured = [one for one in measured_layers(timeline) if not isnan(one.statistics.valid_share)]
    wasteful = [one for one in measured if one.statistics.valid_share < LEAST_VALID_SHARE]
    if wasteful:
        yield _measured(timeline, wasteful)
    if measured:
        return
    padded = [call for call in attention_calls(timeline) if _masks_sequences(call)]
    for anchors in group_by_site(timeline, np.array([call.anchor for call in padded], dtype=np.int64)):
        call = next(one for one in padded if one.anchor == anchors[0])
        yield Candidate(
            what=_WHAT,
            remedy=_REMEDY,
            occurrences=tuple(Occurrence(row, Edit()) for row in anchors.tolist()),
            evidence=(Evidence("mask", "mask", "x".join(map(str, call.mask)), "elements"),),
            probability=0.4,
            unmeasured="the share of real tokens in the recording",
        )


def _measured(timeline: Timeline, layers: list[MeasuredLayer]) -> Candidate:
    share = float(np.mean([layer.statistics.valid_share for layer in layers]))
    calls = sorted((call for layer in layers for call in layer.calls), key=lambda call: call.anchor)
    tokenwise = _tokenwise(timeline, calls)
    cores = np.sort(np.concatenate([call.ops for call in calls]))
    # The layers between belong to no attention in particular: they go with the first one.
    first = shrunk(timeline, calls[0].anchor, [(cores, round(share**2, 4)), (tokenwise, round(share, 4))])
    rest = (Occurrence(call.anchor, Edit()) for call in calls[1:])
    return Candidate(
        what=_WHAT,
        remedy=_REMEDY,
        occurrences=(first, *rest),
        evidence=(Evidence("valid", "tokens that are no padding", round(100 * share, 1), "%"),),
        probability=0.9,
    )


def _tokenwise(timeline: Timeline, calls: list[AttentionCall]) -> IntArray:
    """Layers on tensors of (sequences, tokens, width), of the sizes that the calls attend to."""
    sizes = {(call.query[0], call.query[-2]) for call in calls if len(call.query) == 4}
    trace = timeline.trace
    rows = trace.rows_named(_TOKENWISE)
    rows = rows[(trace.cat[rows] == Category.CPU_OP) & (timeline.phase[rows] != Phase.BACKWARD)]
    rows = outermost(timeline, steady(timeline, rows))

    def fits(inputs: OpInputs) -> bool:
        dims = inputs.shape(0)
        return len(dims) == 3 and dims[:2] in sizes

    return rows[np.array(of_each(trace, rows, fits), dtype=np.bool_)]


def _masks_sequences(call: AttentionCall) -> bool:
    """Whether a mask differs from sequence to sequence, and not from head to head: it tells padding."""
    mask, key = call.mask, call.key
    return len(mask) == 4 and len(key) == 4 and mask[0] == key[0] > 1 and mask[1] == 1 and mask[3] == key[2]


PATTERN = Pattern(
    code="TAP609",
    slug="padding-waste",
    title="Padding that is computed",
    fix=FixKind.ADVICE,
    find=find,
    group="attention_bottleneck",
    stage=Stage.ARCHITECTURE,
)
