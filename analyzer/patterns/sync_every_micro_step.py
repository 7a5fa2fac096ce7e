"""sync-every-micro-step: gradients are accumulated over several micro-batches, and exchanged after each of them.

Why it is slow: DistributedDataParallel reduces gradients in every backward pass. Where the optimizer steps after
several, only the last exchange is needed; the sums of the others are exchanged again.
Trace: between two optimizer steps, several forward calls of a wrapped model, each followed by the same all-reduces.
Edit: the all-reduces of all but the last do not run (`no_sync()`), nor the copies into and out of buckets.
Gate: other exchanges in each backward pass, which are other models'; recordings without optimizer steps. Where
communication hides behind the backward pass, the replay saves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.backward_calls import python_places
from ..timeline.collectives import CollectiveKind, backend_ranges, kind_of
from ..timeline.columns import distinct, is_named, median
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import events_of, in_typical_step, launched_by, outermost, steady
from ..trace.model import HOST_CATEGORIES, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .ddp import COPY_IN, COPY_OUT, backward_exchanges, ddp_forwards, elements, forward_before, operators
from .occurrences import by_site

_OPTIMIZER = "Optimizer.step#"


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate for each backward pass of which only the last before an optimizer step has to exchange."""
    forwards = ddp_forwards(timeline)
    exchanges = backward_exchanges(timeline) if len(forwards) > 1 else forwards
    steps = _optimizer_steps(timeline) if len(exchanges) else exchanges
    if not len(exchanges) or not len(steps):
        return
    exchanged = _by_forward(timeline, exchanges, forwards)
    redundant, micro_steps = _redundant(timeline, forwards, exchanged, steps)
    if not len(redundant):
        return
    spent = _spent(timeline, exchanges, forwards)
    occurrences = (
        Occurrence(
            int(python_places(timeline, exchanged[i][:1])[0]),
            Edit(removed_ops=spent[i]),
            _cost_rows(timeline, exchanged[i]),
        )
        for i in redundant.tolist()
    )
    events = events_of(timeline, in_typical_step(timeline, np.sort(np.concatenate([exchanged[i] for i in redundant]))))
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="gradients are exchanged after every micro-batch",
            remedy="one exchange before the optimizer steps",
            occurrences=group,
            evidence=(
                Evidence("micro-steps", "backward passes that exchange, per optimizer step", micro_steps, "", events),
                Evidence("redundant", "of them not needed in the steps recorded", float(len(redundant)), ""),
            ),
            is_periodic=len(timeline.steps.steady) > len(steps),
        )


def _by_forward(timeline: Timeline, rows: IntArray, forwards: IntArray) -> list[IntArray]:
    """The rows that come after each forward call and before the next."""
    owner = forward_before(timeline, rows, forwards)
    return [rows[owner == i] for i in range(len(forwards))]


def _redundant(
    timeline: Timeline, forwards: IntArray, exchanged: list[IntArray], steps: IntArray
) -> tuple[IntArray, float]:
    """Forward calls (indices) after which gradients are exchanged that are exchanged again before the optimizer steps,
    and how many calls exchange per optimizer step."""
    before = np.searchsorted(timeline.trace.ts_ns[steps], timeline.trace.ts_ns[forwards])
    redundant: list[int] = []
    counts: list[int] = []
    for step in range(len(steps)):
        last: dict[tuple[int, ...], int] = {}
        here = [i for i in np.flatnonzero(before == step).tolist() if len(exchanged[i])]
        for i in here:
            sizes = tuple(sorted(elements(timeline, exchanged[i]).tolist()))
            if sizes in last:
                redundant.append(last[sizes])
            last[sizes] = i
        counts += [len(here)] if here else []
    return np.array(redundant, dtype=np.int64), median(np.array(counts or [0]))


def _spent(timeline: Timeline, exchanges: IntArray, forwards: IntArray) -> list[IntArray]:
    """What an exchange consists of, by the forward call before it: copies into and out of buckets, all-reduces."""
    trace = timeline.trace
    backend = backend_ranges(timeline) if timeline.is_cpu_only else exchanges[:0]
    backend = backend[is_named(trace, backend, lambda name: kind_of(name) == CollectiveKind.ALL_REDUCE)]
    copies = operators(timeline, COPY_IN, COPY_OUT)
    return _by_forward(timeline, distinct(np.concatenate([exchanges, copies, backend])), forwards)


def _optimizer_steps(timeline: Timeline) -> IntArray:
    trace = timeline.trace
    hosts = steady(timeline, trace.rows(*HOST_CATEGORIES))
    return outermost(timeline, hosts[is_named(trace, hosts, lambda name: name.startswith(_OPTIMIZER))])


def _cost_rows(timeline: Timeline, exchanges: IntArray) -> IntArray:
    launched = np.sort(np.concatenate(launched_by(timeline, exchanges)))
    return launched if len(launched) else exchanges


PATTERN = Pattern(
    code="TAP903",
    slug="sync-every-micro-step",
    title="Gradients are exchanged in every micro-step",
    fix=FixKind.SAFE,
    find=find,
    group="distributed",
    stage=Stage.HARDWARE,
)
