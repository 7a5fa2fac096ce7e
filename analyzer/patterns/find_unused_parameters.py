"""find-unused-parameters: the wrapper looks for parameters without gradients in every step, and finds none.

Why it is slow: before each backward pass DistributedDataParallel walks the whole autograd graph from the outputs,
passes them through a function of its own, and afterwards exchanges which parameters were used: all for nothing where
every parameter always gets its gradient.
Trace: `torch.distributed.ddp.reducer::search_unused_parameters` in every step, with `_DDPSink`, and one more small
all-reduce at the end of the backward pass.
Edit: the search, the sink and that all-reduce do not run.
Gate: the shapes show that some parameters got no gradient, since then the search is needed: what the all-reduces
exchange is more than what the gradients that were copied into buckets add up to.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_among, median
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, outermost, steady
from ..trace.model import Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .ddp import COPY_IN, SEARCH, backward_exchanges, ddp_forwards, elements, forward_before, operators, wrapper_frames
from .occurrences import by_site

_WITHOUT_SHAPES = 0.6
"""How sure the rule is where the trace cannot tell whether all parameters were used."""
_SINK = ("autograd::engine::evaluate_function: _DDPSinkBackward", "_DDPSink")
_FRAMES = ("_find_tensors", "_tree_flatten_with_rref", "_tree_unflatten_with_rref")


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for each place that calls a wrapped model whose parameters are all used."""
    searches = operators(timeline, SEARCH)
    forwards = ddp_forwards(timeline)
    if not len(searches) or not len(forwards):
        return
    copies, exchanges = operators(timeline, COPY_IN), backward_exchanges(timeline)
    parameters = median(np.bincount(forward_before(timeline, copies, forwards) + 1, minlength=len(forwards) + 1)[1:])
    sizes, copied = elements(timeline, exchanges), elements(timeline, copies)
    # The map of used parameters has an entry for each of them.
    maps = exchanges[(sizes == parameters) & (parameters > 0)]
    is_known = bool(len(sizes)) and bool((sizes > 0).any())
    if is_known and sizes[~is_among(exchanges, maps)].sum() != copied.sum():
        return
    spent = outermost(timeline, np.concatenate([searches, _sinks(timeline), wrapper_frames(timeline, *_FRAMES), maps]))
    owner = forward_before(timeline, spent, forwards)
    occurrences = (
        Occurrence(int(forward), Edit(removed_ops=spent[owner == i]), spent[owner == i])
        for i, forward in enumerate(forwards.tolist())
        if (owner == i).any()
    )
    events = events_of(timeline, in_typical_step(timeline, searches))
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="each step searches for unused parameters and finds none",
            remedy="not searching",
            occurrences=group,
            evidence=(
                Evidence("searches", "searches per step", count_per_step(timeline, searches), "", events),
                Evidence("parameters", "parameters with a gradient per backward pass", parameters, ""),
            ),
            probability=1.0 if is_known else _WITHOUT_SHAPES,
        )


def _sinks(timeline: Timeline) -> IntArray:
    trace = timeline.trace
    rows = trace.rows_named(_SINK)
    return steady(timeline, rows[trace.cat[rows] == Category.CPU_OP])


PATTERN = Pattern(
    code="TAP904",
    slug="find-unused-parameters",
    title="Unused parameters are searched for in vain",
    fix=FixKind.UNSAFE,
    find=find,
    group="distributed",
    stage=Stage.HARDWARE,
)
