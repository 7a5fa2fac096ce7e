"""local-attention-candidate: attention looks at everything, and nearly all its weight falls near by.

Why it is slow: full attention costs tokens x tokens; where a window holds nearly all of the weight, attention within
windows costs tokens x window.
Trace: how far a layer's attention reaches, recorded by the program: a window of at most an eighth of the
tokens to each side, or on an image's grid of at most a quarter of it, that holds 0.95 of the attention, in a layer of
256 tokens or more.
Edit: the attention takes 1.5 times the share of the keys that the window spans: windows do not line up with the tiles
that kernels work in.
Gate: recordings without the statistics; cross-attention; layers that are windowed already.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.attention_stats import Reach
from ..timeline.model import Timeline
from ..timeline.sites import group_by_site
from ..trace.model import IntArray
from .base import Candidate, FixKind, Pattern
from .measured_attention import MeasuredLayer, measured_layers, shrunk

_HELD = 0.95
_LEAST_TOKENS = 256
_LARGEST_PART = 0.25
"""Of the keys, that a window may span."""
_TILES = 1.5


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that has layers with short reach."""
    layers = [layer for layer in measured_layers(timeline) if _window(layer) is not None]
    if not layers:
        return
    layer_of = {call.anchor: layer for layer in layers for call in layer.calls}
    for anchors in group_by_site(timeline, np.array(sorted(layer_of))):
        here = list(dict.fromkeys(layer_of[row] for row in anchors.tolist()))
        yield Candidate(
            what="attention over all tokens looks near by only",
            remedy="attention within windows",
            occurrences=tuple(
                shrunk(timeline, row, [(_core(layer_of[row], row), _share(layer_of[row]))]) for row in anchors.tolist()
            ),
            evidence=tuple(_row(layer) for layer in here),
            probability=0.6,
        )


def _core(layer: MeasuredLayer, anchor: int) -> IntArray:
    return next(call.core for call in layer.calls if call.anchor == anchor)


def _window(layer: MeasuredLayer) -> int | None:
    """How many keys the narrowest window spans that holds nearly all of a layer's attention; None if that is no small
    part of them."""
    call = layer.calls[0]
    if len(call.query) < 3 or len(call.key) < 3:
        return None
    queries, keys = call.query[-2], call.key[-2]
    if queries != keys or keys < _LEAST_TOKENS:
        return None
    along = [2 * reach.window_tokens + 1 for reach in layer.statistics.reach if reach.share >= _HELD]
    around = [(2 * reach.window_tokens + 1) ** 2 for reach in layer.statistics.reach_2d if reach.share >= _HELD]
    spanned = min([*along, *around], default=keys)
    return spanned if spanned <= _LARGEST_PART * keys else None


def _share(layer: MeasuredLayer) -> float:
    window = _window(layer)
    assert window is not None
    return round(min(_TILES * window / layer.calls[0].key[-2], 1.0), 4)


def _row(layer: MeasuredLayer) -> Evidence:
    """One layer's curve: the share of its attention within each window."""
    name, statistics = layer.statistics.layer, layer.statistics
    if statistics.reach_2d and not any(reach.share >= _HELD for reach in statistics.reach):
        rows, columns = statistics.grid
        what = f"attention within so many rows and columns of {rows}x{columns} in {name}"
        return Evidence(f"reach-{name}", what, _curve(statistics.reach_2d), "")
    return Evidence(f"reach-{name}", f"attention within a window of tokens in {name}", _curve(statistics.reach), "")


def _curve(reach: tuple[Reach, ...]) -> str:
    return ", ".join(f"{one.window_tokens}: {100 * one.share:.0f} %" for one in reach)


PATTERN = Pattern(
    code="TAP611",
    slug="local-attention-candidate",
    title="Full attention that looks near by",
    fix=FixKind.ADVICE,
    find=find,
    group="attention_bottleneck",
    stage=Stage.ARCHITECTURE,
)
