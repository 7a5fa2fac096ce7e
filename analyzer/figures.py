"""How figures and places are written where a person reads them: milliseconds, three significant figures, `a.py:3`."""

from __future__ import annotations

import math

SIGNIFICANT_FIGURES = 3


def format_ms(value_us: float, spread_us: float = 0.0) -> str:
    """`value_us` in milliseconds, without unit: three significant figures, and none that the spread makes noise.

    The last digit shown has at least the weight of the spread's leading digit, as physicists write measurements;
    one significant figure always remains.
    """
    return _format(value_us / 1000.0, spread_us / 1000.0)


def format_pct(value: float) -> str:
    """A share as people read it: "27 %", "under 1 %"."""
    return "under 1 %" if value < 0.95 else f"{value:.0f} %"


def place_text(path: str, line: int, column: int | None = None, *, cell: int | None = None) -> str:
    """A place as terminals and editors link it; of a notebook's cell in words, since none does."""
    if cell is not None:
        return f"{path}, cell {cell}, line {line}"
    return f"{path}:{line}" if column is None else f"{path}:{line}:{column}"


def _format(value: float, spread: float) -> str:
    if not math.isfinite(value) or value == 0.0:
        return "0"
    leading = math.floor(math.log10(abs(value)))
    last = leading - SIGNIFICANT_FIGURES + 1
    if spread > 0.0 and math.isfinite(spread):
        last = min(max(last, math.floor(math.log10(spread))), leading)
    if last >= 0:
        return f"{round(value, -last):.0f}"
    return f"{value:.{-last}f}"
