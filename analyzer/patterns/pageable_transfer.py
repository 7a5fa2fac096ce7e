"""pageable-transfer: batches go to the device from ordinary, pageable memory.

Why it is slow: the driver first copies pageable memory to a pinned buffer of its own, so the transfer runs at a
fraction of the bus's rate and the host is held until it is done; pinned memory is read by the device directly while
the host goes on.
Trace: `Memcpy HtoD (Pageable -> Device)` in the step.
Edit: the copy runs at the bus's usual rate for pinned memory (12 GB/s on PCIe 3, 24 on PCIe 4, 48 on PCIe 5; half the
time where no size was recorded), and the host waits for it no more (`pin_memory=True` with `non_blocking=True`).
Gate: copies under 64 KB, which are constants made on the host rather than batches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import distinct, is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import Timeline, Vendor
from ..timeline.select import count_per_step, events_of, in_typical_step, inside, outer_op, outermost, value_per_step
from ..timeline.sites import group_by_site
from ..timeline.transfers import host_to_device, name_contains, waits_in
from ..trace.model import NONE, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_SMALL_BYTES = 64 << 10
_UNSIZED_FACTOR = 0.5
_PINNED_GB_PER_S = {7: 12.0, 8: 24.0, 9: 48.0, 10: 48.0, 12: 48.0}
"""Rate of pinned copies by the major compute capability: the PCIe generation that the boards of its time have."""
_DEFAULT_GB_PER_S = 24.0


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that sends pageable memory."""
    trace = timeline.trace
    copies = host_to_device(timeline)
    copies = copies[name_contains(timeline, copies, "Pageable")]
    size = trace.size_bytes[copies]
    copies = copies[(size == NONE) | (size >= _SMALL_BYTES)]
    copies = copies[timeline.launches.runtime[copies] != NONE]
    if not len(copies):
        return
    calls = timeline.launches.runtime[copies].astype(np.int64)
    hosts = np.array([outer_op(timeline, row) for row in calls.tolist()], dtype=np.int64)
    hosts = outermost(timeline, distinct(hosts))
    owner = inside(timeline, calls, hosts)
    waits = waits_in(timeline, hosts)
    for group in group_by_site(timeline, hosts):
        chosen = np.searchsorted(hosts, group).tolist()
        sent = copies[is_among(owner, chosen)]
        yield Candidate(
            what="batches are copied to the device from pageable memory",
            remedy="pinned memory",
            occurrences=tuple(_occurrence(timeline, int(hosts[i]), copies[owner == i], waits[i]) for i in chosen),
            evidence=_evidence(timeline, sent),
        )


def _occurrence(timeline: Timeline, host: int, copies: IntArray, waits: IntArray) -> Occurrence:
    scales = tuple(Scale(np.array([copy]), _factor(timeline, copy)) for copy in copies.tolist())
    return Occurrence(host, Edit(scales=scales, unsynced=waits), copies)


def _factor(timeline: Timeline, copy: int) -> float:
    """Time of the copy from pinned memory over its recorded time."""
    size, took_ns = int(timeline.trace.size_bytes[copy]), int(timeline.trace.dur_ns[copy])
    if size == NONE or took_ns <= 0:
        return _UNSIZED_FACTOR
    is_nvidia = timeline.device.vendor is Vendor.NVIDIA
    rate = _PINNED_GB_PER_S.get(timeline.device.capability[0], _DEFAULT_GB_PER_S) if is_nvidia else _DEFAULT_GB_PER_S
    return round(min(1.0, size / rate / took_ns), 2)


def _evidence(timeline: Timeline, copies: IntArray) -> tuple[Evidence, ...]:
    size = np.maximum(timeline.trace.size_bytes[copies], 0)
    evidence = [
        Evidence(
            "copies",
            "pageable copies per step",
            count_per_step(timeline, copies),
            "",
            events_of(timeline, in_typical_step(timeline, copies)),
        )
    ]
    if size.sum():
        evidence.append(Evidence("size", "sent per step", round(value_per_step(timeline, copies, size) / 1e6, 2), "MB"))
        rate = float(size.sum() / max(timeline.trace.dur_ns[copies].sum(), 1))
        evidence.append(Evidence("rate", "rate of these copies", round(rate, 2), "GB/s"))
    return tuple(evidence)


PATTERN = Pattern(
    code="TAP201",
    slug="pageable-transfer",
    title="Copies from pageable memory",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches"),
    group="transfers and synchronisation",
    stage=Stage.HARDWARE,
)
