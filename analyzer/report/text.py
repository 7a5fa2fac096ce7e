"""The report as an editor would show it: `path:line:column: severity: message [slug]`, then why, evidence and fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from textwrap import wrap

from rich.text import Text

from ..figures import format_ms, format_pct, place_text
from ..findings import (
    CURED,
    AttentionRow,
    CounterRow,
    DetectorSummary,
    Evidence,
    Finding,
    Grain,
    Location,
    Report,
    Safety,
    SampleRow,
    Severity,
    TraceSummary,
)
from .diagnosis import SaidClaim, said
from .printable import one_line, printable

STYLES = {Severity.WARNING: "bold yellow", Severity.INFORMATION: "bold cyan", Severity.HINT: "bold"}
LABEL_WIDTH = 12
DETAIL_WIDTH = 100
LIKELY_PLACE = 0.75
"""A place less sure than this is called a guess."""
SHOWN_CALLERS = 4
MOST_PATHS = 2
MOST_LAYERS = 6
MOST_KERNELS = 6
LONGEST_KERNEL = 60
IN_HEADLINE = frozenset({"cost", "step", "saving", "spread"})
"""Ids of the evidence that the message gives already."""

LineOf = Callable[[Location], "str | None"]
"""Gives the first line of a place, without its end; None if there is no such line."""
WhyOf = Callable[[str], str]
"""Gives a sentence on why the pattern of this slug costs time; "" if it has none."""


def to_text(report: Report, line_of: LineOf, why_of: WhyOf) -> Text:
    """The whole report. Findings stand in the report's order; a hint takes one line, the others show everything."""
    text = _summary(report.trace)
    for finding in report.findings:
        text.append("\n")
        text.append_text(_headline(finding))
        _labelled(text, "stale", [f"{one_line(finding.stale)}; record again"] if finding.stale else [])
        if finding.severity is not Severity.HINT or finding.diagnosis is not None:
            text.append_text(_excerpt(finding.location, line_of))
            text.append_text(_details(finding, why_of(finding.slug)))
    text.append_text(_attention(report.tables.attention))
    text.append_text(_counters(report.tables.counters))
    text.append_text(_samples(report.tables.device_samples))
    text.append("\n" + count_line(report) + together(report.trace) + "\n")
    text.plain = printable(text.plain)
    return text


def count_line(report: Report) -> str:
    """How many findings there are of each severity: "3 findings: 2 warnings, 1 hint"."""
    counts = Counter(finding.severity for finding in report.findings)
    parts = [_plural(counts[severity], severity.value) for severity in Severity if counts[severity]]
    return ": ".join([_plural(len(report.findings), "finding"), ", ".join(parts)]) if parts else "no findings"


def together(trace: TraceSummary) -> str:
    """What all fixes save at once: "; all fixes together would save about 12.1 ms (27 %)". "" if nothing."""
    if trace.combined_saving_us_per_step <= 0:
        return ""
    saving = format_ms(trace.combined_saving_us_per_step)
    return f"; all fixes together would save about {saving} ms ({format_pct(trace.combined_saving_pct)})"


def _summary(trace: TraceSummary) -> Text:
    text = Text(one_line(_traces(trace.paths)) + "\n", style="bold")
    steps = f"{_plural(trace.steps, 'steady step')} of {format_ms(trace.step_us)} ms on {one_line(trace.device)}"
    shares = [
        f"{name.removesuffix('_pct').replace('_', ' ')} {format_pct(share)}"
        for name, share in trace.breakdown.items()
        if share >= 1.0 and not name.startswith("kernels_")
    ]
    text.append(f"  {steps}\n  {', '.join(shares)}\n", style="not bold")
    for problem in trace.problems:
        text.append(f"  could not use: {one_line(problem)}\n", style="not bold yellow")
    if trace.detector is not None:
        text.append(f"  detector: {one_line(_seen(trace.detector))}\n", style="not bold")
    if trace.missing:
        text.append(f"  would tell more: {', '.join(trace.missing)}\n", style="not bold")
    return text


def _seen(detector: DetectorSummary) -> str:
    """ "2 of 41 windows look bad, the worst forward: Attention_3 (0.97, unfused-attention)"."""
    parts = [f"{detector.bad or 'none'} of {_plural(detector.windows, 'window')} look{'s' * (detector.bad == 1)} bad"]
    if detector.worst:
        said = ", ".join(part for part in (f"{detector.worst_probability:.2f}", detector.worst_kind) if part)
        parts.append(f"the worst {detector.worst} ({said})")
    if detector.single:
        parts.append(f"{detector.single} in one step only")
    if detector.unknown:
        parts.append(f"{detector.unknown} unlike all that it knows")
    return ", ".join(parts)


def _traces(paths: tuple[str, ...]) -> str:
    return ", ".join(paths) if len(paths) <= MOST_PATHS else f"{len(paths)} traces, the newest {paths[0]}"


def _headline(finding: Finding) -> Text:
    place = finding.location
    missing = "(no line any more)" if finding.stale else "(no line found)"
    where = _where(place) if place else missing
    return Text.assemble(
        (one_line(where), "bold"),
        ": ",
        (finding.severity.value, STYLES[finding.severity]),
        f": {one_line(finding.message)} ",
        (f"[{finding.slug}]", "dim"),
        _cured(finding),
        "\n",
    )


def _cured(finding: Finding) -> str:
    """Why a finding whose fault is mended already is still told: the trace is older than the fix."""
    cured = next((one for one in finding.evidence if one.id == CURED), None)
    return f" ({cured.name}: {cured.value})" if cured is not None else ""


def _excerpt(place: Location | None, line_of: LineOf) -> Text:
    """The source line with carets under the place."""
    line = line_of(place) if place else None
    if place is None or line is None:
        return Text()
    end = place.end_column if place.end_line == place.line else len(line) + 1
    width = max(min(end, len(line) + 1) - place.column, 1)
    # Tabs stay tabs, so that the carets stand under what they mark in any terminal.
    indent = "".join("\t" if character == "\t" else " " for character in line[: place.column - 1])
    number = f"{place.line:>{LABEL_WIDTH - 3}} "
    margin = " " * len(number)
    carets = ("^" * width, STYLES[Severity.WARNING])
    return Text.assemble(f"{number}| {line}\n{margin}| {indent}", carets, "\n")


def _details(finding: Finding, why: str) -> Text:
    text = Text()
    _labelled(text, "why", [why or finding.title])
    figures = [_figure(item) for item in finding.evidence if item.id not in IN_HEADLINE]
    _labelled(text, "evidence", [" · ".join(figures)] if figures else [])
    _labelled(text, "sure", [_certainty(finding)])
    _labelled(
        text,
        "after",
        [f"little of this is left once {' or '.join(finding.removed_by)} is fixed"] if finding.removed_by else [],
    )
    _labelled(text, "see", [_at(related.location, related.message) for related in finding.related[:SHOWN_CALLERS]])
    text.append_text(_diagnosis(finding))
    fixes = [_fix(fix.title, fix.safety) for fix in finding.fixes]
    _labelled(text, "fix", fixes or ([] if finding.stale else ["by hand; see the pattern's page"]))
    return text


def _diagnosis(finding: Finding) -> Text:
    """What a language model says of it."""
    text = Text()
    if finding.diagnosis is None:
        return text
    told = said(finding, finding.diagnosis)
    _labelled(text, "cause", [one_line(told.cause), f"({one_line(told.standing)})"])
    _labelled(text, "claims", [_claim(claim) for claim in told.claims])
    _labelled(text, "model", [one_line(remark) for remark in told.remarks])
    return text


def _claim(claim: SaidClaim) -> str:
    figures = " · ".join(one_line(_figure(item)) for item in claim.evidence)
    return one_line(claim.text) + (f" [{figures}]" if figures else "")


def _certainty(finding: Finding) -> str:
    """How sure it is that this is the pattern, and that this is its line."""
    place = finding.location
    pattern = f"{100 * finding.probability:.0f} %"
    if place is None:
        return pattern
    if place.grain is not Grain.LINE:
        return (
            f"{pattern}; only the {place.grain.value} is known ({100 * place.confidence:.0f} %, by {place.how.value})"
        )
    if place.confidence < LIKELY_PLACE:
        return f"{pattern}; the line is a guess ({100 * place.confidence:.0f} %, by {place.how.value})"
    return f"{pattern}, line found by {place.how.value}"


def _labelled(text: Text, label: str, lines: list[str]) -> None:
    """Append `lines`, wrapped, with the label before the first."""
    wrapped = [part for line in lines for part in wrap(line, DETAIL_WIDTH)]
    for i, line in enumerate(wrapped):
        text.append(f"  {label if i == 0 else '':<{LABEL_WIDTH - 2}}", style="dim")
        text.append(f"{line}\n")


def _figure(item: Evidence) -> str:
    value = f"{item.value:.4g}" if isinstance(item.value, float) else str(item.value)
    return f"{item.name} {value} {item.unit}".rstrip()


def _at(place: Location, message: str) -> str:
    return f"{_where(place)}: {message}"


def _where(place: Location) -> str:
    return place_text(place.path, place.line, place.column, cell=place.cell)


def _fix(title: str, safety: Safety) -> str:
    return f"{title} [{safety.value}]"


def _attention(rows: Sequence[AttentionRow]) -> Text:
    """The dearest attention layers, a line each."""
    text = Text()
    if not rows:
        return text
    share = format_pct(sum(row.share_pct for row in rows))
    text.append(f"\nattention: {_plural(len(rows), 'layer')}, {share} of the step\n", style="bold")
    dearest = sorted(rows, key=lambda row: -row.share_pct)[:MOST_LAYERS]
    for row in dearest:
        at = row.location
        where = place_text(at.path, at.line, cell=at.cell) if at else "(no line found)"
        text.append(f"  {one_line(row.name)} {one_line(where)}: {', '.join(_of_layer(row))}\n")
    if len(rows) > len(dearest):
        text.append(f"  and {len(rows) - len(dearest)} more; --format json has them all\n", style="dim")
    return text


def _of_layer(row: AttentionRow) -> list[str]:
    """What is known of an attention layer, in words."""
    parts = [f"{row.backend}, {format_pct(row.share_pct)} of the step"]
    if row.heads and row.head_dim and row.query_tokens and row.key_tokens:
        tokens = (
            f"{row.query_tokens}" if row.query_tokens == row.key_tokens else f"{row.query_tokens} x {row.key_tokens}"
        )
        parts.append(f"{_plural(row.heads, 'head')} of {row.head_dim}, {tokens} tokens")
    if row.achieved_tflops is not None:
        peak = f" of {row.peak_tflops:.3g}" if row.peak_tflops else ""
        parts.append(f"{row.achieved_tflops:.3g}{peak} TFLOP/s")
    if row.compute_ratio is not None:
        parts.append(f"compute {format_pct(100 * row.compute_ratio)}")
    return parts


def _counters(rows: Sequence[CounterRow]) -> Text:
    """The kernels with hardware counters that take longest, a line each."""
    text = Text()
    if not rows:
        return text
    text.append(f"\nhardware counters: {_plural(len(rows), 'kernel')}\n", style="bold")
    for row in rows[:MOST_KERNELS]:
        kernel = one_line(row.kernel.removeprefix("void "))
        name = kernel if len(kernel) <= LONGEST_KERNEL else kernel[: LONGEST_KERNEL - 1] + "…"
        text.append(f"  {name}: {', '.join(_of_kernel(row))}\n")
    if len(rows) > MOST_KERNELS:
        text.append(f"  and {len(rows) - MOST_KERNELS} more; --format json has them all\n", style="dim")
    return text


UNITS = (("_pct", 1.0, "%"), ("_bytes", 1e-9, "GB"), ("_mhz", 1.0, "MHz"), ("_w", 1.0, "W"))
"""By the ending of a sample's name: factor and unit as a person reads it."""


def _samples(rows: Sequence[SampleRow]) -> Text:
    """What the driver said while recording, in one line: "gpu busy 63 % (at most 98 %)"."""
    parts = [
        f"{one_line(row.name.removesuffix(ending)).replace('_', ' ')} "
        f"{row.mean * factor:.3g} {unit} (at most {row.largest * factor:.3g} {unit})"
        for row in rows
        for ending, factor, unit in UNITS
        if row.name.endswith(ending)
    ]
    return Text(f"\ndevice while recording: {', '.join(parts)}\n" if parts else "")


def _of_kernel(row: CounterRow) -> list[str]:
    """What was counted of a kernel, in words."""
    figures = (
        (row.us_per_step, 1e-3, "ms per step"),
        (row.dram_bytes, 1e-6, "MB of DRAM traffic"),
        (row.dram_gb_per_s, 1.0, "GB/s"),
        (row.l2_hit_pct, 1.0, "% L2 hits"),
        (row.tensor_pct, 1.0, "% tensor cores"),
        (row.tensor_instructions if row.tensor_pct is None else None, 1.0, "tensor core instructions"),
        (row.flops, 1e-9, "GFLOP on plain cores"),
    )
    known = [f"{value * scale:.3g} {unit}" for value, scale, unit in figures if value is not None]
    return known or [f"measured {_plural(row.launches, 'time')}"]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 or noun == Severity.INFORMATION.value else f"{count} {noun}s"
