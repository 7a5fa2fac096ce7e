"""batchnorm-not-folded: in inference, batch norms run as operators of their own behind their convolutions.

Why it is slow: with fixed statistics a batch norm is a factor and an offset for each channel, which the convolution's
weight and bias can hold. As an operator it reads and writes the whole feature map once more.
Trace: `aten::batch_norm` with `training=False` right after a convolution, with no backward pass behind it.
Edit: on the CPU the norms go: oneDNN adds a bias within the convolution (measured with torch 2.13, one thread, a 3x3
convolution of 32 channels on 56x56: 8.0 ms with the norm, 7.65 without, 7.46 folded). On a device the norms of
convolutions that have a bias go, too; where there is none the folded bias is added by a kernel of its own, which moves
as many bytes as the norm, so there only the host's part shrinks, to the 0.3 that a plain addition takes of it.
Gate: training, and frozen norms in training (their convolutions still learn); norms without a convolution before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_among
from ..timeline.convolution_calls import work_rows
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.roots import by_model_call
from ..timeline.select import backward_of, count_per_step, events_of, in_typical_step, is_noticeable
from ..trace.model import IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .conv_norm import conv_norms
from .occurrences import by_site

_BIAS_HOST_FACTOR = 0.3
"""Host time of adding a bias, over that of a batch norm."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per model that runs its batch norms unfolded."""
    pairs = [pair for pair in conv_norms(timeline) if pair.is_training is False]
    norms = np.array([pair.norm for pair in pairs], dtype=np.int64)
    has_bias = np.array([pair.shape.has_bias for pair in pairs], dtype=np.bool_)
    order = np.argsort(norms)
    norms, has_bias = norms[order], has_bias[order]
    learns = np.array([len(rows) > 0 for rows in backward_of(timeline, norms)], dtype=np.bool_)
    norms, has_bias = norms[~learns], has_bias[~learns]
    if not is_noticeable(timeline, work_rows(timeline, norms)):
        return
    goes = norms if timeline.is_cpu_only else norms[has_bias]
    occurrences = [
        _occurrence(timeline, anchor, rows, rows[is_among(rows, goes)])
        for anchor, rows in by_model_call(timeline, norms)
    ]
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="batch norms run on their own behind convolutions in inference",
            remedy="folding them into the convolutions",
            occurrences=group,
            evidence=(
                Evidence(
                    "norms",
                    "batch norms right after a convolution per step",
                    count_per_step(timeline, norms),
                    "",
                    events_of(timeline, in_typical_step(timeline, norms)),
                ),
                Evidence(
                    "bias", "of these, behind a convolution with a bias", count_per_step(timeline, norms[has_bias]), ""
                ),
            ),
            probability=0.9,
        )


def _occurrence(timeline: Timeline, anchor: int, norms: IntArray, goes: IntArray) -> Occurrence:
    """The norms of one call of a model; `goes` are those of which nothing remains."""
    stays = norms[~is_among(norms, goes)]
    scales = (Scale(stays, _BIAS_HOST_FACTOR),) if len(stays) else ()
    return Occurrence(anchor, Edit(scales=scales, removed_ops=goes), work_rows(timeline, norms))


PATTERN = Pattern(
    code="TAP508",
    slug="batchnorm-not-folded",
    title="Batch norm not folded",
    fix=FixKind.SAFE,
    find=find,
    needs=("shapes",),
    group="inefficient_conv",
    stage=Stage.IMPLEMENTATION,
)
