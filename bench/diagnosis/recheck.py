"""Whether figures in claims are those of the evidence that they name: a second opinion, which shares no code with the
check that the product does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from torchtraceap.analyzer.diagnosis.answer import GivenClaim
from torchtraceap.analyzer.diagnosis.dossier import Dossier
from torchtraceap.analyzer.diagnosis.figures import figures_of
from torchtraceap.analyzer.diagnosis.text import name as short
from torchtraceap.analyzer.findings import Claim

from .claims import ascii_text

_NUMBER = re.compile(r"(?<![\w.])(?P<number>\d[\d,]*(?:\.\d+)?)\s?(?P<unit>ms\b|us\b|s\b|%|)(?!\w)")
_IN_MS = {"ms": 1.0, "us": 1e-3, "s": 1e3}


def false_figures(claims: Iterable[Claim | GivenClaim], dossier: Dossier) -> list[str]:
    """Each figure that is not that of any evidence its claim names, with the claim. Figures in names and in evidence
    that is text are no figures."""
    return [f"{figure} in {claim.text!r}" for claim in claims for figure in _false_in(claim, dossier)]


def _false_in(claim: Claim | GivenClaim, dossier: Dossier) -> Iterator[str]:
    cited = [figure for figure in figures_of(dossier) if figure.id in claim.evidence]
    values = [(float(one.value), one.unit) for one in cited if not isinstance(one.value, str)]
    text = _without_names(claim.text, dossier, [one.value for one in cited if isinstance(one.value, str)])
    for found in _NUMBER.finditer(text):
        if not any(_is_equal(found["number"].replace(",", ""), found["unit"], value, unit) for value, unit in values):
            yield found[0]


def _without_names(text: str, dossier: Dossier, values: list[str]) -> str:
    rows = (row.name for rows in (dossier.tree, dossier.layers) for row in rows)
    own = (one.name for one in dossier.evidence)
    slugs = (choice.slug for choice in dossier.choices)
    names = {ascii_text(one) for name in (*rows, *own, *slugs, *values) for one in (name, short(name))}
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, " ") if name else text
    return text


def _is_equal(written: str, written_unit: str, value: float, unit: str) -> bool:
    """Within half of the last digit that is written."""
    number, exponent = Decimal(written), Decimal(written).as_tuple().exponent
    scale = _IN_MS[written_unit] / _IN_MS[unit] if written_unit in _IN_MS and unit in _IN_MS else 1.0
    if written_unit and unit and written_unit != unit and scale == 1.0:
        return False
    half = 0.5 * 10.0 ** int(exponent)
    return abs(float(number) - value / scale) <= half * 1.001
