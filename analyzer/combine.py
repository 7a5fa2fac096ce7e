"""What fixes are worth together, and which to do first.

Savings do not add up: two fixes may save the same time, and one may make another needless. So everything said of
several findings comes from replays with their edits applied at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from .findings import Finding, Severity
from .order import in_order_of_work, stage_rank
from .timeline.edit import Edit
from .timeline.model import Timeline
from .timeline.replay import Replayed, per_step_us, replay

_MOST_COMPARED = 8
"""Findings of which every two are replayed together: the dearest ones."""
_LITTLE = 0.2
"""Share of its saving below which what a finding still saves after another's fix is called little."""


@dataclass(frozen=True, slots=True)
class Combined:
    """Findings that know of each other, in the order in which to do them, and what all their fixes save together."""

    findings: tuple[Finding, ...]
    saving_us_per_step: float
    saving_pct: float


def combine(timeline: Timeline, baseline: Replayed | None, priced: Sequence[tuple[Finding, Edit]]) -> Combined:
    """Compare findings by replays of their edits together. `baseline` is the replay of the unchanged graph.

    Hints count neither in the combined saving nor as what another finding is removed by.
    """
    shown = [i for i, (found, _) in enumerate(priced) if _counts(found)]
    findings = [found for found, _ in priced]
    if baseline is None or not shown:
        return Combined(tuple(sorted(findings, key=in_order_of_work)), 0.0, 0.0)
    dearest = sorted(shown, key=lambda i: -findings[i].saving_us_per_step)[:_MOST_COMPARED]
    alone = {i: replay(timeline.graph, priced[i][1]) for i in dearest}
    removed_by: dict[int, list[str]] = {}
    for one, other in combinations(dearest, 2):
        both = replay(timeline.graph, Edit.union((priced[one][1], priced[other][1])))
        for first, second in ((one, other), (other, one)):
            if not _comes_before(findings[first], findings[second]):
                continue
            # Step by step: where steps differ, the median of two savings is not the sum of their medians.
            left_us_each = alone[first].step_us_each - both.step_us_each
            left_us = per_step_us(left_us_each, baseline, is_periodic=priced[second][1].is_periodic)
            if left_us < _LITTLE * findings[second].saving_us_per_step:
                removed_by.setdefault(second, []).append(findings[first].slug)
    for index, slugs in removed_by.items():
        findings[index] = replace(findings[index], removed_by=tuple(dict.fromkeys(slugs)))
    together_us = _saving_us(timeline, baseline, Edit.union(priced[i][1] for i in shown))
    saving_pct = 100.0 * together_us / baseline.step_us if baseline.step_us > 0 else 0.0
    return Combined(tuple(sorted(findings, key=in_order_of_work)), round(together_us, 3), round(saving_pct, 2))


def _counts(finding: Finding) -> bool:
    return finding.severity is not Severity.HINT and finding.saving_us_per_step > 0


def _comes_before(first: Finding, second: Finding) -> bool:
    """Whether `first` may be what makes `second` needless: it saves more, or as much at an earlier stage."""
    if first.saving_us_per_step != second.saving_us_per_step:
        return first.saving_us_per_step > second.saving_us_per_step
    return (stage_rank(first), first.code) < (stage_rank(second), second.code)


def _saving_us(timeline: Timeline, baseline: Replayed, edit: Edit) -> float:
    saved_us = baseline.step_us_each - replay(timeline.graph, edit).step_us_each
    return per_step_us(saved_us, baseline, is_periodic=edit.is_periodic)
