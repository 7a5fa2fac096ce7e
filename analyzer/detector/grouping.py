"""Neighbouring small parts of a step become one region; no region holds work of two phases."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..timeline.model import Phase
from ..trace.model import NONE, BoolArray, FloatArray, Int8Array, IntArray

_WANTED_SHARES = tuple(0.03 * 1.3**growth for growth in range(12))
"""Of a step: the sizes that regions are merged to, tried in turn."""
_WANTED_MOST = 48
"""Regions of a step, above which they are made larger."""
_LEAST_SHARE = 0.005
"""Of a step, below which work has no region of its own beside work of the same phase, or where it is of no phase."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a step in order. Arrays have shape (parts,)."""

    share: FloatArray
    """Of a usual step."""
    phase: Int8Array
    within: IntArray
    """The enclosing part, preferably not merged across; NONE at the top."""
    forward: IntArray
    """For backward parts: the part, by its place, of the forward operators; NONE for none."""


def group(parts: Parts) -> IntArray:
    """The region of each part, numbered from 0 in order; hardly ever more than `_WANTED_MOST` of them.

    Only a step that turns from phase to phase more often than that has regions with several.
    """
    regions = np.empty(0, dtype=np.int64)
    for keeps_phases in (True, False):
        for wanted in _WANTED_SHARES:
            regions = _group(parts, wanted, keeps_phases)
            if not len(regions) or regions[-1] < _WANTED_MOST:
                return regions
    return regions


def _group(parts: Parts, wanted: float, keeps_phases: bool) -> IntArray:
    is_backward = parts.phase == Phase.BACKWARD
    forward = _merged(_pieces(parts, parts.within, wanted), parts, wanted, keeps_phases)
    if not is_backward.any():
        return forward
    # A backward part goes with others whose forward parts share a region.
    source = np.where(parts.forward != NONE, forward[parts.forward], NONE)
    family = np.where(is_backward, _filled(source, is_backward), parts.within)
    return _merged(_pieces(parts, family, wanted), parts, wanted, keeps_phases)


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


def _merged(piece: IntArray, parts: Parts, wanted: float, keeps_phases: bool) -> IntArray:
    """The region of each part: small pieces are joined to the region before them, if that is of their phase."""
    if not len(piece):
        return piece
    sizes = np.bincount(piece, weights=parts.share).tolist()
    phases = parts.phase[np.flatnonzero(np.diff(piece, prepend=-1))].tolist()
    region, held, phase = 0, sizes[0], phases[0]
    regions = [0]
    for size, (own, later) in zip(sizes[1:], pairwise([*phases[1:], NONE]), strict=True):
        is_one_phase = own == phase
        is_small = held + size < wanted or (min(held, size) < wanted / 2 and held + size < 2 * wanted)
        joins = is_small and (is_one_phase or not keeps_phases)
        # What hardly counts goes with what follows, or comes before where no more of its phase does.
        joins |= held < _LEAST_SHARE and (is_one_phase or phase == Phase.OTHER)
        joins |= size < _LEAST_SHARE and (is_one_phase or own == Phase.OTHER) and (is_small or later != own)
        if joins:
            held += size
            phase = own if phase == Phase.OTHER else phase
        else:
            region, held, phase = region + 1, size, own
        regions.append(region)
    return np.array(regions)[piece]
