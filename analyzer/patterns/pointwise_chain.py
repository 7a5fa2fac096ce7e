"""pointwise-chain: a run of elementwise operators over one tensor, each its own pass over memory.

Why it is slow: an elementwise operator does one sum per element and spends its time reading and writing; n of them in a
row move the tensor n times where a fused kernel would move it once. Autograd keeps what each of them needs.
Trace: four or more neighbouring elementwise operators of the same size in one function, outside of compiled code.
Edit: the chain shrinks to one and a half passes of its average operator, and so does its backward: a fused kernel still
reads each operand and writes what the backward needs.
Gate: short chains; chains whose time is under 1 % of the step; what `handwritten-norm-or-activation` has a name for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.chains import Chain, chains
from ..timeline.columns import is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline
from ..timeline.select import (
    count_per_step,
    events_of,
    in_typical_step,
    is_noticeable,
)
from .base import Candidate, FixKind, Occurrence, Pattern
from .handwritten_norm_or_activation import composed_rows
from .occurrences import by_site

_SHORTEST = 4
_PASSES_LEFT = 1.5
_NOTICEABLE_SHARE = 0.01


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that holds a chain."""
    found = [chain for chain in chains(timeline) if len(chain.rows) >= _SHORTEST]
    if not found:
        return
    named = composed_rows(timeline)
    found = [chain for chain in found if not is_among(chain.rows, named).any()]
    length = {int(chain.rows[0]): len(chain.rows) for chain in found}
    for group in by_site(timeline, (_occurrence(timeline, chain) for chain in found)):
        cost_rows = np.sort(np.concatenate([occurrence.cost_rows for occurrence in group]))
        if not is_noticeable(timeline, cost_rows, _NOTICEABLE_SHARE):
            continue
        anchors = np.array([occurrence.anchor for occurrence in group], dtype=np.int64)
        yield Candidate(
            what="elementwise operators pass over the same tensor one after another",
            remedy="one fused kernel",
            occurrences=group,
            evidence=(
                Evidence(
                    "chains",
                    "chains per step",
                    count_per_step(timeline, anchors),
                    "",
                    events_of(timeline, in_typical_step(timeline, anchors)),
                ),
                Evidence(
                    "length", "operators in the longest of them", max(length[row] for row in anchors.tolist()), ""
                ),
            ),
            probability=0.8,
        )


def _occurrence(timeline: Timeline, chain: Chain) -> Occurrence:
    left = round(_PASSES_LEFT / len(chain.rows), 3)
    edit = Edit(scales=(Scale(np.concatenate([chain.hosts, chain.device]), left),))
    return Occurrence(int(chain.rows[0]), edit, chain.hosts if timeline.is_cpu_only else chain.device)


PATTERN = Pattern(
    code="TAP701",
    slug="pointwise-chain",
    title="Chain of elementwise operators",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("launches",),
    group="pointwise and operators",
)
