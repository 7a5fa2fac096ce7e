"""What rules about waits have in common: a wait counts only for the idle time that it causes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence
from ..timeline.edit import Edit
from ..timeline.model import Timeline
from ..timeline.select import count_per_step, events_of, in_typical_step, us_per_step
from ..timeline.sites import group_by_site
from ..timeline.transfers import idle_us_per_step, waits_in
from ..trace.model import IntArray
from .base import Candidate, Occurrence

_NOTICEABLE_SHARE = 0.001
"""Idle time below this share of the step is nothing to speak of, not even in a hint."""


def waiting_candidates(
    timeline: Timeline, hosts: IntArray, *, what: str, remedy: str, counted: str
) -> Iterator[Candidate]:
    """One candidate per site of `hosts` (operators, not overlapping) in which the host waits and the device then idles.

    The cost is the idle time; the edit takes the waits away.
    """
    waits = waits_in(timeline, hosts)
    waiting = np.array([len(rows) > 0 for rows in waits], dtype=np.bool_)
    by_host = {int(host): rows for host, rows in zip(hosts.tolist(), waits, strict=True) if len(rows)}
    for group in group_by_site(timeline, hosts[waiting]):
        rows = np.sort(np.concatenate([by_host[host] for host in group.tolist()]))
        idle_us = idle_us_per_step(timeline, rows)
        if idle_us < _NOTICEABLE_SHARE * timeline.step_us:
            continue
        events = events_of(timeline, in_typical_step(timeline, rows))
        yield Candidate(
            what=what,
            remedy=remedy,
            occurrences=tuple(
                Occurrence(anchor=host, edit=Edit(unsynced=by_host[host]), cost_rows=by_host[host])
                for host in group.tolist()
            ),
            evidence=(
                Evidence("count", counted, count_per_step(timeline, group), ""),
                Evidence(
                    "wait", "time the host waits per step", round(us_per_step(timeline, rows) / 1000, 3), "ms", events
                ),
                Evidence("idle", "device idle after the waits, per step", round(idle_us / 1000, 3), "ms"),
            ),
            cost_us_per_step=idle_us,
            probability=0.95,
        )
