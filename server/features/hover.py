"""Hover: what a finding rests on, what it costs, how sure it is, and what would change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from ...analyzer.figures import format_ms, format_pct
from ...analyzer.findings import Finding, Grain, How, Safety
from ...analyzer.report.diagnosis import SaidClaim, said
from ...analyzer.report.printable import printable
from ...codemap.source import parse_source
from ...codemap.titles import titled
from ..marks import Repaired
from ..merge import Seen, recurring
from ..pages import page_uri
from ..publish import evidence_value, overlapping
from ..state import FolderState

if TYPE_CHECKING:
    from ..app import Server

BAR_CELLS = 30
_MARKS = re.compile(r"[\\`*\[\]<>|]|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown would read as a mark. An underscore within a word is none."""
_NUMBERED = "|".join(rf"(?<=^\d{{{digits}}})" for digits in range(1, 10))
_STEERING = re.compile(_MARKS.pattern + rf"|[~&@$]|^[#+=-]|(?:{_NUMBERED})[.)]|(?<=www)\.|:(?=//)", re.IGNORECASE)
"""That, and whatever else some Markdown reads as a mark, a list, an entity or an address that it makes a link of."""
FOUND_BY = {
    How.STACK: "the recorded call stack",
    How.TAG: "a record_function tag",
    How.MODULE: "the module's name",
    How.SHAPE: "tensor shapes",
    How.ORDER: "the order of operators",
    How.OPERATOR: "the operator's name",
}


def register(server: Server) -> None:
    """Explain what is under the cursor."""

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        found = server.engine.locate(params.text_document.uri)
        if found is None:
            return None
        folder, path, above = found
        line = params.position.line + 1 + above
        publisher = server.engine.publisher(folder)
        here = overlapping(publisher.shown(path, folder.settings), line, line)
        parts = [explain(seen, folder.state) for seen in here]
        parts += [_repaired(one) for one in repaired_at(folder.state, path, line)]
        if not parts:
            return None
        where = here[0].finding.location if here else None
        text = lsp.MarkupContent(lsp.MarkupKind.Markdown, "\n\n---\n\n".join(parts))
        return lsp.Hover(text, publisher.place(where)[1] if where else None)


def explain(seen: Seen, state: FolderState) -> str:
    """A finding in Markdown."""
    finding = seen.finding
    page = page_uri(finding.slug)
    head = f"**{escaped(finding.title)}** `{finding.slug}`"
    parts = [
        head,
        escaped(recurring(finding.message, len(seen.traces), len(state.recordings))),
        _table(finding),
        _diagnosis(seen, state),
        bar(state.step_us(seen.trace), finding.saving_us_per_step),
        _certainty(finding),
        _first(finding),
        _left(finding),
        f"[Why this is slow, and what to do]({page})" if page else "",
    ]
    return "\n\n".join(part for part in parts if part)


def bar(step_us: float, saving_us: float) -> str:
    """The step before and after the fix, to scale; "" where nothing is known to be saved."""
    if step_us <= 0 or saving_us <= 0:
        return ""
    after_us = max(step_us - saving_us, 0.0)
    cells = round(BAR_CELLS * after_us / step_us)
    rows = [
        f"now    {'█' * BAR_CELLS} {format_ms(step_us)} ms per step",
        f"after  {('█' * cells).ljust(BAR_CELLS, '░')} {format_ms(after_us)} ms, predicted",
    ]
    return "```text\n" + "\n".join(rows) + "\n```"


def repaired_at(state: FolderState, path: str, line: int) -> list[Repaired]:
    """The repaired faults of the function whose head is on a line, and those that were on it."""
    repaired = state.repaired_in(path)
    if not repaired:
        return []
    functions = parse_source(path, state.text(path) or "").functions
    heads = {f.qualname for f in functions if f.first_line <= line <= getattr(f.node, "lineno", 0)}
    return [one for one in repaired if one.qualname in heads or one.line <= line <= max(one.line, one.end_line)]


def _table(finding: Finding) -> str:
    if not finding.evidence:
        return ""
    rows = [(escaped(item.name), escaped(evidence_value(item))) for item in finding.evidence]
    # Padded for editors that show a table as it is written.
    left, right = (max(map(len, column)) for column in zip(("measured", ""), *rows, strict=True))
    head = [f"| {'measured':{left}} | {'':{right}} |", f"|{'-' * (left + 2)}|{'-' * (right + 1)}:|"]
    return "\n".join([*head, *(f"| {name:{left}} | {value:>{right}} |" for name, value in rows)])


def _diagnosis(seen: Seen, state: FolderState) -> str:
    """What a language model says of the finding, or why one that was asked does not."""
    diagnosis = state.diagnosis(seen)
    if diagnosis is None:
        return f"Not explained: {foreign(seen.unexplained)}." if seen.unexplained else ""
    told = said(seen.finding, diagnosis)
    lines = [f"**Cause**, {foreign(told.standing)}:", "", foreign(told.cause), "", *map(_claim, told.claims)]
    return "\n".join([*lines, *(f"\n{foreign(remark)}" for remark in told.remarks)])


def _claim(claim: SaidClaim) -> str:
    figures = "; ".join(f"{foreign(item.name)}: {foreign(evidence_value(item))}" for item in claim.evidence)
    return f"- {foreign(claim.text)}" + (f" *({figures})*" if figures else "")


def _certainty(finding: Finding) -> str:
    where = finding.location
    sure = f"{finding.probability:.0%} sure of the pattern".replace("%", " %")
    if where is None:
        return f"{sure}; no place in the source was found."
    doubt = "" if where.confidence >= 0.95 else f" ({where.confidence:.0%} sure)".replace("%", " %")
    what = "the line was found" if where.grain is Grain.LINE else f"only the {where.grain.value} is known,"
    return f"{sure}; {what} by {FOUND_BY[where.how]}{doubt}."


def _first(finding: Finding) -> str:
    """What to do first: the safe fix if there is one."""
    fixes: Sequence = sorted(finding.fixes, key=lambda fix: fix.safety is not Safety.SAFE)
    if not fixes:
        return ""
    share = f", {format_pct(finding.saving_pct)} of the step" if finding.saving_pct > 0 else ""
    return f"First: {escaped(titled(fixes[0], finding).title)}{share}."


def _left(finding: Finding) -> str:
    """That another finding's fix makes this one's needless."""
    slugs = " or ".join(f"`{slug}`" for slug in finding.removed_by)
    return f"Little of this is left once {slugs} is fixed: do that first." if slugs else ""


def _repaired(one: Repaired) -> str:
    saving = f"; about {format_ms(one.saving_us_per_step)} ms per step expected" if one.saving_us_per_step > 0 else ""
    return (
        f"**{escaped(one.title)}** `{one.slug}`: fixed, not yet measured{saving}. Record a new trace to see the gain."
    )


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return _MARKS.sub(r"\\\g<0>", text).replace("\n", " ")


def foreign(text: str) -> str:
    """What a language model wrote as Markdown that shows just that: no link, no picture, no heading, no list."""
    return _STEERING.sub(r"\\\g<0>", printable(" ".join(text.split())))
