"""Neighbouring small parts of a step become one region; no region holds work of two phases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..timeline.model import Phase
from ..trace.model import NONE, BoolArray, FloatArray, Int8Array, IntArray

WANTED_SHARE = 0.03
"""Of a step: the size that regions are merged to."""
_WANTED_MOST = 48
"""Regions of a step, above which they are made larger."""
_GROWTH = 1.3
_LEAST_SHARE = 0.005
"""Of a step, below which work has no region of its own beside work of the same phase, or where it is of no phase."""
_NEVER_ACROSS = 0.3
"""Regions are kept apart by phase up to this size, above which there are only very many turns from phase to phase."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a step in order. Arrays have shape (parts,)."""

    share: FloatArray
    """Of the step, the mean over the steps."""
    phase: Int8Array
    within: IntArray
    """The enclosing part, preferably not merged across; NONE at the top."""
    forward: IntArray
    """For backward parts: the part, by its place, of the forward operators; NONE for none."""


def group(parts: Parts) -> IntArray:
    """The region of each part, numbered from 0 in order; at most `_WANTED_MOST` of them if that can be."""
    wanted = WANTED_SHARE
    while True:
        regions = _group(parts, wanted)
        if not len(regions) or regions[-1] < _WANTED_MOST or wanted > 1:
            return regions
        wanted *= _GROWTH


def _group(parts: Parts, wanted: float) -> IntArray:
    is_backward = parts.phase == Phase.BACKWARD
    # Two passes: a backward part goes with others whose forward parts share a region.
    forward = _merged(_pieces(parts, parts.within, wanted), parts, wanted)
    source = np.where(parts.forward != NONE, forward[parts.forward], NONE)
    if not is_backward.any():
        return forward
    family = np.where(is_backward, _filled(source, is_backward), parts.within)
    return _merged(_pieces(parts, family, wanted), parts, wanted)


def _filled(source: IntArray, wanted: BoolArray) -> IntArray:
    """`source`, where it is NONE that of the last wanted part before that has one."""
    known = np.where(wanted & (source != NONE), np.arange(len(source)), 0)
    return source[np.maximum.accumulate(known)]


def _pieces(parts: Parts, family: IntArray, wanted: float) -> IntArray:
    """The piece of each part: neighbours of one phase and family, cut into about equal pieces of the wanted size."""
    turns = (np.diff(parts.phase, prepend=-1) != 0) | (np.diff(family, prepend=-2) != 0)
    run = np.cumsum(turns) - 1
    first = np.flatnonzero(turns)
    before = np.cumsum(parts.share) - parts.share
    size = np.bincount(run, weights=parts.share)
    count = np.maximum(np.floor(size / wanted), 1)
    middle = before - before[first][run] + parts.share / 2
    nth = np.floor(middle / np.maximum(size, 1e-12)[run] * count[run]).astype(np.int64)
    return np.cumsum(turns | (np.diff(nth, prepend=0) != 0)) - 1


def _merged(piece: IntArray, parts: Parts, wanted: float) -> IntArray:
    """The region of each part: pieces that are small are joined to the region before them, of the same phase."""
    if not len(piece):
        return piece
    sizes = np.bincount(piece, weights=parts.share).tolist()
    phases = parts.phase[np.flatnonzero(np.diff(piece, prepend=-1))].tolist()
    region, held, phase = 0, sizes[0], phases[0]
    regions = [0]
    for size, next_phase in zip(sizes[1:], phases[1:], strict=True):
        small = min(held, size)
        fits = small < _LEAST_SHARE or held + size < (2 * wanted if small < wanted / 2 else wanted)
        is_aside = (size if next_phase == Phase.OTHER else held if phase == Phase.OTHER else 1.0) < _LEAST_SHARE
        if is_aside or (fits and (next_phase == phase or wanted > _NEVER_ACROSS)):
            held += size
            phase = next_phase if phase == Phase.OTHER else phase
        else:
            region, held, phase = region + 1, size, next_phase
        regions.append(region)
    return np.array(regions)[piece]
