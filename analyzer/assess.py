"""Prices what the rules found: a candidate's saving is the baseline replay less the replay of its edit."""

from __future__ import annotations

import math

import numpy as np

from .analysis import DEFAULTS, Options
from .figures import format_ms, format_pct
from .findings import Evidence, Finding, Severity, TraceSummary
from .patterns.base import Candidate, Pattern
from .patterns.missing import missing_options
from .timeline.edit import Edit
from .timeline.model import Breakdown, Timeline
from .timeline.replay import Replayed, replay
from .timeline.select import events_of, in_typical_step, us_per_step
from .trace.model import IntArray

WARNING_PCT = 10.0
"""Predicted saving, in per cent of the step, from which a finding is a warning."""
LIKELY = 0.5
"""A candidate less probable than this is only a hint, whatever it would save."""


def to_finding(
    timeline: Timeline,
    pattern: Pattern,
    candidate: Candidate,
    options: Options = DEFAULTS,
    baseline: Replayed | None = None,
) -> Finding:
    """Price one candidate and word it.

    `baseline` is the replay of the unchanged graph; whoever prices many candidates computes it once.
    """
    if candidate.informational:
        return _statement(pattern, candidate)
    baseline = baseline or replay(timeline.graph, Edit())
    edited = replay(timeline.graph, Edit.union(occurrence.edit for occurrence in candidate.occurrences))
    cost_rows = _cost_rows(candidate)
    cost_us = us_per_step(timeline, cost_rows) if candidate.cost_us_per_step is None else candidate.cost_us_per_step
    saved_us_each = np.maximum(baseline.step_us_each - edited.step_us_each, 0.0)
    saving_us = float(np.median(saved_us_each)) if len(saved_us_each) else 0.0
    spread_us = _half_quartile_range(saved_us_each)
    saving_pct = 100.0 * saving_us / baseline.step_us if baseline.step_us > 0 else 0.0
    evidence = (
        *candidate.evidence,
        Evidence(
            "cost", "time per step", _milli(cost_us), "ms", events_of(timeline, in_typical_step(timeline, cost_rows))
        ),
        Evidence("step", "step", _milli(baseline.step_us), "ms"),
        Evidence("saving", "saved per step, by replay", _milli(saving_us), "ms"),
    )
    return Finding(
        code=pattern.code,
        slug=pattern.slug,
        severity=_severity(saving_pct, candidate.probability, options),
        title=pattern.title,
        message=_message(candidate, cost_us, saving_us, saving_pct, spread_us, timeline.breakdown, baseline.step_us),
        cost_us_per_step=round(cost_us, 3),
        saving_us_per_step=round(saving_us, 3),
        saving_pct=round(saving_pct, 2),
        probability=candidate.probability,
        evidence=evidence,
    )


def summarize(timeline: Timeline) -> TraceSummary:
    """The recording as a whole: the `trace` object of the report."""
    trace, breakdown = timeline.trace, timeline.breakdown
    shares = {
        "compute_pct": breakdown.compute_pct,
        "memcpy_pct": breakdown.memcpy_pct,
        "communication_exposed_pct": breakdown.communication_exposed_pct,
        "idle_pct": breakdown.idle_pct,
        "data_loading_pct": breakdown.data_loading_pct,
        "forward_pct": breakdown.forward_pct,
        "backward_pct": breakdown.backward_pct,
        "optimizer_pct": breakdown.optimizer_pct,
    }
    return TraceSummary(
        paths=trace.info.paths,
        device=timeline.device.name,
        steps=len(timeline.steps.steady),
        step_us=round(_finite(timeline.step_us), 3),
        gpu_idle_pct=None if timeline.is_cpu_only else round(_finite(breakdown.gpu_idle_pct), 2),
        step_idle_pct=None if timeline.is_cpu_only else round(_finite(breakdown.step_idle_pct), 2),
        breakdown={name: round(_finite(share), 2) for name, share in shares.items()},
        problems=tuple(problem.message for problem in trace.problems),
        missing=missing_options(timeline),
    )


def _statement(pattern: Pattern, candidate: Candidate) -> Finding:
    return Finding(
        code=pattern.code,
        slug=pattern.slug,
        severity=Severity.INFORMATION,
        title=pattern.title,
        message=f"{candidate.what}: {candidate.remedy}",
        cost_us_per_step=0.0,
        saving_us_per_step=0.0,
        saving_pct=0.0,
        probability=candidate.probability,
        evidence=candidate.evidence,
    )


def _severity(saving_pct: float, probability: float, options: Options) -> Severity:
    if probability < LIKELY or saving_pct < options.min_saving_pct:
        return Severity.HINT
    return Severity.WARNING if saving_pct >= WARNING_PCT else Severity.INFORMATION


def _message(
    candidate: Candidate,
    cost_us: float,
    saving_us: float,
    saving_pct: float,
    spread_us: float,
    breakdown: Breakdown,
    step_us: float,
) -> str:
    cost = format_ms(cost_us, breakdown.step_spread_us * cost_us / step_us if step_us > 0 else 0.0)
    spent = f"{candidate.what}: {cost} of {format_ms(step_us, breakdown.step_spread_us)} ms per step"
    if saving_us <= 0.0:
        return f"{spent}; {candidate.remedy} would save nothing here"
    return (
        f"{spent}; {candidate.remedy} would save about {format_ms(saving_us, spread_us)} ms ({format_pct(saving_pct)})"
    )


def _cost_rows(candidate: Candidate) -> IntArray:
    rows = [occurrence.cost_rows for occurrence in candidate.occurrences]
    return np.unique(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)


def _half_quartile_range(values: np.ndarray) -> float:
    if len(values) < 2:
        return 0.0
    low, high = np.percentile(values, (25, 75))
    return float(high - low) / 2


def _milli(value_us: float) -> float:
    return round(value_us / 1000.0, 4)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
