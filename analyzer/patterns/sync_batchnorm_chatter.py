"""sync-batchnorm-chatter: batch norms exchange their statistics among the ranks, one tiny collective after the other.

Why it is slow: each layer waits for all ranks before it can go on, forward and backward. The exchange is a few hundred
numbers, so its time is latency: tens of microseconds for each layer, and more on more ranks.
Trace: many collectives in the forward pass, of few elements each, as `SyncBatchNorm` and hand-written layers like it
make them (several for each layer in PyTorch before 1.6), and the tiny all-reduces of their backward.
Edit: these collectives do not run: plain batch norm. The norm's own kernels stay as they are.
Gate: few of them; the exchange of buffers before the forward pass. A device's own batch of four samples or fewer is
what such layers are for: then the finding is only a hint.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.collectives import Collectives, find_collectives
from ..timeline.columns import distinct
from ..timeline.edit import Edit
from ..timeline.model import Phase, Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, inside, steady
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .ddp import wrapper_frames

_TINY_ELEMENTS = 16_384
"""Twice the channels and a count of a wide layer, from several ranks."""
_TINY_NS = 200_000
"""Where sizes are not recorded."""
_MIN_PER_STEP = 20
_SMALL_BATCH = 4
_STATISTICS = ("aten::batch_norm_stats", "aten::native_batch_norm", "aten::batch_norm_elemt", "aten::batch_norm")
_BUFFERS = frozenset({"c10d::broadcast_"})


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate, if the forward pass communicates in many small portions."""
    if timeline.is_cpu_only:
        return
    found = find_collectives(timeline)
    if not len(found):
        return
    tiny = _tiny(timeline, found)
    phase = timeline.phase[found.row]
    forward = found.row[tiny & (phase == Phase.FORWARD)]
    if not len(forward) or count_per_step(timeline, forward) < _MIN_PER_STEP:
        return
    chosen = tiny & ((phase == Phase.FORWARD) | (phase == Phase.BACKWARD))
    rows, hosts = found.row[chosen], found.host[chosen]
    batch = _batch(timeline)
    yield Candidate(
        what="batch norms wait for the other ranks' statistics",
        remedy="synchronising only the layers that need it",
        occurrences=tuple(
            Occurrence(host, Edit(removed_ops=np.array([host])), rows[hosts == host])
            for host in distinct(hosts).tolist()
        ),
        evidence=(
            Evidence(
                "collectives",
                "tiny collectives per step",
                count_per_step(timeline, rows),
                "",
                events_of(timeline, in_typical_step(timeline, np.sort(rows))),
            ),
            Evidence("forward", "of them in the forward pass", count_per_step(timeline, forward), ""),
            *((Evidence("batch", "samples on each device", batch, ""),) if batch else ()),
        ),
        probability=0.4 if 0 < batch <= _SMALL_BATCH else 0.9,
    )


def _tiny(timeline: Timeline, found: Collectives) -> np.ndarray:
    """Which collectives carry few elements, those of the wrapper's buffers left out."""
    is_small = np.where(
        found.elements != NONE, found.elements <= _TINY_ELEMENTS, timeline.trace.dur_ns[found.row] <= _TINY_NS
    )
    names = np.array([timeline.trace.name_of(host) not in _BUFFERS for host in found.host.tolist()], dtype=np.bool_)
    in_wrapper = inside(timeline, found.host, wrapper_frames(timeline, "_sync_buffers")) != NONE
    return is_small & names & ~in_wrapper


def _batch(timeline: Timeline) -> int:
    """Samples of the batch norms' inputs, as most of them have it; 0 where shapes were not recorded."""
    rows: IntArray = steady(timeline, timeline.trace.rows_named(_STATISTICS))
    rows = rows[timeline.trace.cat[rows] == Category.CPU_OP]
    sizes = [shape[0] for row in rows[:200].tolist() if len(shape := timeline.trace.inputs_of(row).shape(0)) > 1]
    return max(set(sizes), key=sizes.count, default=0)


PATTERN = Pattern(
    code="TAP906",
    slug="sync-batchnorm-chatter",
    title="Batch norms synchronise among ranks",
    fix=FixKind.ADVICE,
    find=find,
    needs=("device", "launches"),
    group="distributed",
    stage=Stage.ARCHITECTURE,
)
