"""Attention statistics of a recording: per-head importance, how far attention reaches, how many tokens are real.

The program measures them inside the model and writes them into the trace as ranges of no length, one for each
execution of an attention layer, right behind its attention:

    torchtraceap.attention layer=blocks.3.attn importance=0.31,0.02,0.67 reach=8:0.62,16:0.97 valid=0.41

Tokens of an image also have a distance in its rows and columns: `grid=14x14 reach2d=1:0.35,2:0.97`. `by=gradient` says
how the importance was measured.

Plain words, as the profiler writes names into its JSON without escaping quotes. A range that cannot be read is passed
over. Other words are ignored, so that later versions can say more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..trace.model import Trace

PREFIX = "torchtraceap.attention "
"""What the name of every such range begins with; `key=value` words follow."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Share of the attention that falls on keys at most `window_tokens` away from their query.

    On a grid the distance is the larger one of rows and columns, and tokens that stand before the grid are near to all.
    """

    window_tokens: int
    share: float


@dataclass(frozen=True, slots=True)
class AttentionStatistics:
    """What was measured in one layer."""

    layer: str
    """Qualified name of the module, as in `model.named_modules()`."""
    importance: tuple[float, ...] = ()
    """Share of each head in what the layer does to the loss (or its output); they sum to 1. () if not measured."""
    reach: tuple[Reach, ...] = ()
    """By window, narrow to wide; () if not measured."""
    valid_share: float = math.nan
    """Tokens that are no padding over all tokens; NaN if not measured."""
    grid: tuple[int, int] = (0, 0)
    """Rows and columns of the image that the tokens are of; zeros if they are of none that is known."""
    reach_2d: tuple[Reach, ...] = ()
    """On the grid, by window, narrow to wide."""
    measure: str = ""
    """How importance was measured: "gradient" or "norm" (see docs/attention-measures.md); "" if not said."""


def statistics_of(trace: Trace) -> list[tuple[int, AttentionStatistics]]:
    """Rows of the ranges that hold statistics, in time order, with what they hold."""
    by_name = {name: found for name in trace.names if (found := parse(name)) is not None}
    rows = trace.rows_named(tuple(by_name)) if by_name else ()
    return [(row, by_name[trace.name_of(row)]) for row in (int(row) for row in rows)]


def parse(name: str) -> AttentionStatistics | None:
    """The statistics that a range's name holds; None for any other range, and for one that is damaged."""
    if not name.startswith(PREFIX):
        return None
    said = dict(_pair(word, "=") for word in name[len(PREFIX) :].split())
    try:
        importance = tuple(float(share) for share in _items(said.get("importance", "")))
        reach, reach_2d = _reach(said.get("reach", "")), _reach(said.get("reach2d", ""))
        valid = float(said.get("valid", "nan"))
        rows, columns = _pair(said.get("grid", "0x0"), "x")
        grid = (int(rows), int(columns))
    except ValueError:
        return None
    shares = (*importance, *(one.share for one in (*reach, *reach_2d)), 0.0 if math.isnan(valid) else valid)
    if "layer" not in said or not all(0.0 <= share <= 1.0 for share in shares) or min(grid) < 0:
        return None
    return AttentionStatistics(said["layer"], importance, reach, valid, grid, reach_2d, said.get("by", ""))


def _reach(text: str) -> tuple[Reach, ...]:
    pairs = [_pair(item, ":") for item in _items(text)]
    reach = (Reach(int(window), float(share)) for window, share in pairs)
    return tuple(sorted(reach, key=lambda one: one.window_tokens))


def _pair(text: str, mark: str) -> tuple[str, str]:
    before, _, behind = text.partition(mark)
    return before, behind


def _items(text: str) -> list[str]:
    return text.split(",") if text else []


def text_of(statistics: AttentionStatistics) -> str:
    """The name of a range that holds `statistics`: what `parse` reads."""
    words = [f"layer={statistics.layer}"]
    if statistics.importance:
        words.append("importance=" + ",".join(f"{share:.5g}" for share in statistics.importance))
    if statistics.measure:
        words.append(f"by={statistics.measure}")
    for word, reach in (("reach", statistics.reach), ("reach2d", statistics.reach_2d)):
        if reach:
            words.append(f"{word}=" + ",".join(f"{one.window_tokens}:{one.share:.5g}" for one in reach))
    if min(statistics.grid) > 0:
        words.append(f"grid={statistics.grid[0]}x{statistics.grid[1]}")
    if not math.isnan(statistics.valid_share):
        words.append(f"valid={statistics.valid_share:.5g}")
    return PREFIX + " ".join(words)
