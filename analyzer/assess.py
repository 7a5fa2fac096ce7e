"""Prices what the rules found: a candidate's saving is the baseline replay less the replay of its edit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .detected import DEFAULTS, Analysis, Options
from .detector.agreement import weigh
from .detector.model import WindowScores
from .detector.parts import summarize_parts
from .figures import format_ms, format_pct
from .findings import SPREAD, Evidence, Finding, Severity, TraceSummary
from .order import in_order_of_work
from .patterns.base import Candidate, Pattern
from .patterns.missing import missing_options
from .timeline.columns import distinct, quartiles
from .timeline.counter_evidence import counter_evidence
from .timeline.edit import Edit, no_rows
from .timeline.family import Family
from .timeline.model import IdleCause, KernelClass, Timeline
from .timeline.replay import Replayed, per_step_us, replay
from .timeline.select import events_of, in_typical_step, us_per_step
from .trace.model import NONE, FloatArray, IntArray

WARNING_PCT = 10.0
"""Predicted saving, in per cent of the step, from which a finding is a warning."""
FEWEST_TO_RECUR = 3
"""Of so many steady steps or more, one alone does not make a pattern."""
LIKELY = 0.5
"""A candidate less probable than this is only a hint, whatever it would save."""


def to_finding(
    timeline: Timeline,
    pattern: Pattern,
    candidate: Candidate,
    options: Options = DEFAULTS,
    baseline: Replayed | None = None,
    scores: WindowScores | None = None,
) -> Finding:
    """Price one candidate and word it.

    `baseline` is the replay of the unchanged graph; whoever prices many candidates computes it once. `scores` is what
    the detector says, which the finding's probability then rests on, too.
    """
    if candidate.informational:
        return _statement(pattern, candidate)
    if candidate.unmeasured:
        return _possibility(pattern, candidate)
    if candidate.unexplained:
        return _unexplained(timeline, pattern, candidate)
    opinion = weigh(timeline, pattern.slug, candidate, scores)
    price = _price(timeline, candidate, baseline or replay(timeline.graph, Edit()))
    is_single = _is_single(timeline, candidate)
    # A cost that is no sum over events cannot be added up from any.
    cost_rows = _cost_rows(candidate) if candidate.cost_us_per_step is None else no_rows()
    cost_events = events_of(timeline, in_typical_step(timeline, cost_rows))
    evidence = (
        *candidate.evidence,
        *opinion.evidence,
        *counter_evidence(timeline, cost_rows),
        Evidence("cost", "time per step", _milli(price.spent_us), "ms", cost_events),
        Evidence("step", "step", _milli(price.step_us), "ms"),
        Evidence("saving", f"saved per step, by replay {price.clause}".rstrip(), _milli(price.saving_us), "ms"),
        *_spread(price),
        *(
            (Evidence("steps", "steady steps that show it", f"1 of {len(timeline.steps.steady)}", ""),)
            if is_single
            else ()
        ),
    )
    return Finding(
        code=pattern.code,
        slug=pattern.slug,
        # What a cold start costs says nothing about the next run, and what one step shows little about the others.
        severity=Severity.HINT
        if timeline.steps.is_cold or is_single
        else _severity(price.saving_pct, opinion.probability, options),
        title=pattern.title,
        message=_message(candidate, price, timeline.breakdown.step_spread_us),
        cost_us_per_step=round(price.cost_us, 3),
        saving_us_per_step=round(price.saving_us, 3),
        saving_pct=round(price.saving_pct, 2),
        probability=opinion.probability,
        evidence=evidence,
        stage=pattern.stage,
    )


def price_all(analysis: Analysis, options: Options = DEFAULTS) -> list[Finding]:
    """Every candidate of an analysis as a finding, without places, what to do first first."""
    timeline = analysis.timeline
    baseline = replay(timeline.graph, Edit())
    told = [d for d in analysis.detected if not d.candidate.needs_source]
    found = [to_finding(timeline, d.pattern, d.candidate, options, baseline, analysis.windows) for d in told]
    return sorted(found, key=in_order_of_work)


def summarize(timeline: Timeline, family: Family | None = None, scores: WindowScores | None = None) -> TraceSummary:
    """The recording as a whole: the `trace` object of the report. `family` is what the model was taken for, `scores`
    what the detector says."""
    trace, breakdown, job = timeline.trace, timeline.breakdown, timeline.job
    shares = _shares(timeline)
    return TraceSummary(
        paths=job.paths if job is not None else trace.info.paths,
        device=timeline.device.name,
        steps=len(timeline.steps.steady),
        step_us=round(_finite(timeline.step_us), 3),
        gpu_idle_pct=None if timeline.is_cpu_only else round(_finite(breakdown.gpu_idle_pct), 2),
        step_idle_pct=None if timeline.is_cpu_only else round(_finite(breakdown.step_idle_pct), 2),
        breakdown={name: round(_finite(share), 2) for name, share in shares.items()},
        problems=(*(problem.text for problem in trace.problems), *(job.problems if job is not None else ())),
        missing=missing_options(timeline),
        model_type=family.value if family else "",
        detector=summarize_parts(timeline, scores) if scores is not None else None,
    )


def _shares(timeline: Timeline) -> dict[str, float]:
    """What a step divides into; with a device also idle time by cause and kernel time by class, in per cent."""
    breakdown = timeline.breakdown
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
    if not timeline.is_cpu_only:
        shares["communication_pct"] = breakdown.communication_pct
        shares["communication_overlap_pct"] = breakdown.communication_overlap_pct
        causes = zip(IdleCause, breakdown.idle_by_cause_pct, strict=True)
        shares |= {f"idle_{cause.name.lower()}_pct": share for cause, share in causes}
        classes = zip(KernelClass, breakdown.class_pct, strict=True)
        shares |= {f"kernels_{kind.name.lower()}_pct": share for kind, share in classes if share > 0}
    return shares


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
        stage=pattern.stage,
    )


def _possibility(pattern: Pattern, candidate: Candidate) -> Finding:
    """What the source may show and the trace cannot price."""
    message = (
        f"possible: {candidate.what}; {candidate.remedy} may help; {candidate.unmeasured} would show what it costs"
    )
    return replace(_statement(pattern, candidate), severity=Severity.HINT, message=message)


def _unexplained(timeline: Timeline, pattern: Pattern, candidate: Candidate) -> Finding:
    """What only the detector finds: its cost, and no saving."""
    cost_us, spread_us = candidate.cost_us_per_step or 0.0, timeline.breakdown.step_spread_us
    message = "; ".join(
        part for part in (f"{candidate.what}: {_spent(timeline.step_us, spread_us, cost_us)}", candidate.remedy) if part
    )
    cost = Evidence("cost", "time per step", _milli(cost_us), "ms")
    return replace(
        _statement(pattern, candidate),
        severity=Severity.HINT,
        message=message,
        cost_us_per_step=round(cost_us, 3),
        evidence=(*candidate.evidence, cost, Evidence("step", "step", _milli(timeline.step_us), "ms")),
    )


@dataclass(frozen=True, slots=True)
class _Price:
    """What a candidate costs and what its edit saves, per step."""

    step_us: float
    spent_us: float
    cost_us: float
    """What was spent and is saved: work that goes may let waits, or work that it caused, go too."""
    saving_us: float
    spread_us: float
    """Half the range between the quartiles of the steps' savings."""
    clause: str
    """On what condition it saves that; "" if on none."""

    @property
    def saving_pct(self) -> float:
        """The saving as a share of the recorded step."""
        return 100.0 * self.saving_us / self.step_us if self.step_us > 0 else 0.0


def _price(timeline: Timeline, candidate: Candidate, baseline: Replayed) -> _Price:
    def average(us_each: FloatArray) -> float:
        return per_step_us(us_each, baseline, is_periodic=candidate.is_periodic)

    edit = candidate.edit
    saved_us = _saved_us_each(timeline, baseline, edit)
    clause = ""
    if candidate.first is not None:
        before = replay(timeline.graph, candidate.first)
        then_us = _saved_us_each(timeline, before, Edit.union([candidate.first, edit]))
        if average(then_us) > average(saved_us):
            saved_us, clause = then_us, candidate.first_clause
    saving_us = average(saved_us)
    cost_us = candidate.cost_us_per_step
    if cost_us is None:
        cost_us = us_per_step(timeline, _cost_rows(candidate))
    return _Price(
        step_us=baseline.step_us,
        spent_us=cost_us,
        cost_us=max(cost_us, saving_us),
        saving_us=saving_us,
        spread_us=_half_quartile_range(saved_us),
        clause=clause,
    )


def _spread(price: _Price) -> tuple[Evidence, ...]:
    """The saving's spread where there is one: how exactly the saving may be written."""
    if price.spread_us <= 0.0:
        return ()
    return (Evidence(SPREAD, "half the range between the quartiles of the saving", _milli(price.spread_us), "ms"),)


def _saved_us_each(timeline: Timeline, before: Replayed, edit: Edit) -> FloatArray:
    """How much shorter each steady step is with the edit, in µs; below 0 where it gets longer."""
    return before.step_us_each - replay(timeline.graph, edit).step_us_each


def _is_single(timeline: Timeline, candidate: Candidate) -> bool:
    """Whether only one of several steady steps shows it: an anomaly, which the next recording may not have."""
    anchors = np.array([occurrence.anchor for occurrence in candidate.occurrences], dtype=np.int64)
    steps = timeline.steps.of[np.concatenate([anchors, _cost_rows(candidate)])]
    shown = distinct(steps[steps != NONE])
    return len(timeline.steps.steady) >= FEWEST_TO_RECUR and len(shown) == 1


def _severity(saving_pct: float, probability: float, options: Options) -> Severity:
    if probability < LIKELY or saving_pct < options.min_saving_pct:
        return Severity.HINT
    return Severity.WARNING if saving_pct >= WARNING_PCT else Severity.INFORMATION


def _message(candidate: Candidate, price: _Price, step_spread_us: float) -> str:
    """One sentence: what happens, what it costs here, what would be saved."""
    spent = f"{candidate.what}: {_spent(price.step_us, step_spread_us, price.cost_us)}"
    if price.saving_us <= 0.0:
        return f"{spent}; {candidate.remedy} would save nothing here"
    saved = f"{format_ms(price.saving_us, price.spread_us)} ms ({format_pct(price.saving_pct)})"
    return f"{spent}; {candidate.remedy} would save about {saved} {price.clause}".rstrip()


def _spent(step_us: float, step_spread_us: float, cost_us: float) -> str:
    """ "9.8 of 22.3 ms per step"."""
    cost_spread_us = step_spread_us * cost_us / step_us if step_us > 0 else 0.0
    return f"{format_ms(cost_us, cost_spread_us)} of {format_ms(step_us, step_spread_us)} ms per step"


def _cost_rows(candidate: Candidate) -> IntArray:
    rows = [occurrence.cost_rows for occurrence in candidate.occurrences]
    return distinct(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)


def _half_quartile_range(values: FloatArray) -> float:
    if len(values) < 2:
        return 0.0
    low, high = quartiles(values)
    return (high - low) / 2


def _milli(value_us: float) -> float:
    return round(value_us / 1000.0, 4)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
