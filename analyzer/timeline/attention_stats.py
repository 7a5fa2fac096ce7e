"""Attention statistics of a recording: per-head importance, how far attention reaches, how many tokens are real.

`record --attention` measures them inside the model and writes them into the trace as ranges of no length, one for
each execution of an attention layer, right behind its attention:

    torchtraceap.attention {"layer": "blocks.3.attn", "importance": [0.31, 0.02, ...], "reach": [[8, 0.62], [16, 0.97]],
                            "valid": 0.41}

A range that cannot be read is passed over. Other keys are ignored, so that later versions can say more.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import cast

from ..trace.model import Trace

PREFIX = "torchtraceap.attention "
"""What the name of every such range begins with; JSON follows."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Share of the attention that falls on keys at most `window_tokens` away from their query."""

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


def statistics_of(trace: Trace) -> list[tuple[int, AttentionStatistics]]:
    """Rows of the ranges that hold statistics, in time order, with what they hold."""
    by_name = {name: found for name in trace.names if (found := parse(name)) is not None}
    rows = trace.rows_named(tuple(by_name)) if by_name else ()
    return [(row, by_name[trace.name_of(row)]) for row in (int(row) for row in rows)]


def parse(name: str) -> AttentionStatistics | None:
    """The statistics that a range's name holds; None for any other range, and for one that is damaged."""
    if not name.startswith(PREFIX):
        return None
    try:
        said = json.loads(name[len(PREFIX) :])
        return _from_json(said) if isinstance(said, dict) else None
    except (ValueError, TypeError):
        return None


def text_of(statistics: AttentionStatistics) -> str:
    """The name of a range that holds `statistics`: what `parse` reads."""
    said: list[tuple[str, object]] = [("layer", statistics.layer)]
    if statistics.importance:
        said.append(("importance", [round(share, 5) for share in statistics.importance]))
    if statistics.reach:
        said.append(("reach", [[one.window_tokens, round(one.share, 5)] for one in statistics.reach]))
    if not math.isnan(statistics.valid_share):
        said.append(("valid", round(statistics.valid_share, 5)))
    return PREFIX + json.dumps(dict(said))


def _from_json(said: object) -> AttentionStatistics:
    """Raises ValueError or TypeError where a value is not of its kind."""
    held = cast("dict[str, object]", said)
    importance = tuple(float(share) for share in cast("list[float]", held.get("importance", ())))
    reach = tuple(
        Reach(int(window), float(share)) for window, share in cast("list[list[float]]", held.get("reach", ()))
    )
    valid = float(cast("float", held.get("valid", math.nan)))
    if any(not 0.0 <= share <= 1.0 for share in (*importance, *(one.share for one in reach))):
        raise ValueError("a share lies between 0 and 1")
    return AttentionStatistics(str(held.get("layer", "")), importance, tuple(sorted(reach, key=_window)), valid)


def _window(reach: Reach) -> int:
    return reach.window_tokens
