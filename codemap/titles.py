"""How a fix is called where a person chooses it."""

from __future__ import annotations

from dataclasses import replace

from ..analyzer.figures import format_ms
from ..analyzer.findings import SPREAD, Finding, Fix, Safety


def _spread_us(finding: Finding) -> float:
    """The saving's spread: the title rounds as the message does."""
    return next((float(one.value) * 1000.0 for one in finding.evidence if one.id == SPREAD), 0.0)


def titled(fix: Fix, finding: Finding) -> Fix:
    """A fix whose title says the saving and, for an unsafe one, that results want checking."""
    title = fix.title
    if finding.saving_us_per_step > 0 and "per step" not in title:
        title += f" (about {format_ms(finding.saving_us_per_step, _spread_us(finding))} ms per step)"
    if fix.safety is Safety.UNSAFE and "check results" not in title:
        title += " (check results)"
    return replace(fix, title=title)
