"""A counterfactual: what a fix would change in the recorded dependency graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ..trace.model import IntArray
from .columns import distinct, is_among


def no_rows() -> IntArray:
    """An empty row array."""
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Scale:
    """Multiply the time of `rows` by `factor` (0 removes it; above 1 makes it longer).

    A device row's own duration is scaled. A host row's whole subtree is scaled: its children's host time too, but
    not the device work that they launched, nor the time they spend waiting for the device.
    """

    rows: IntArray
    factor: float


def scales_within(scales: Iterable[Scale], rows: IntArray) -> tuple[Scale, ...]:
    """The scales cut down to `rows`; those that hold none of them are left out."""
    cut = (Scale(scale.rows[is_among(scale.rows, rows)], scale.factor) for scale in scales)
    return tuple(scale for scale in cut if len(scale.rows))


@dataclass(frozen=True, slots=True)
class Edit:
    """What a fix amounts to; all rows are event rows. Edits of several occurrences add up with `union`."""

    scales: tuple[Scale, ...] = ()
    removed_ops: IntArray = field(default_factory=no_rows)
    """Host rows that would not run: their subtree, its launches and the device work launched all go."""
    unsynced: IntArray = field(default_factory=no_rows)
    """RUNTIME rows (or ops around them) that would no longer make the host wait for the device."""
    overlapped: IntArray = field(default_factory=no_rows)
    """Host rows whose time would be spent beside the step (in loader workers): they cost the step only what
    exceeds the rest of it."""
    kept_share: float = 0.0
    """Share of the overlapped rows' time that the step keeps all the same, to take over what was made beside it."""
    host_factor: float = 1.0
    """Scales all host time outside waits (a compiled or graph-launched step)."""
    is_periodic: bool = False
    """Whether it changes work that comes round once in several steps: no median over the steps shows what it saves."""

    @staticmethod
    def union(edits: Iterable[Edit]) -> Edit:
        """All edits at once. Rows named twice count once; of several host factors the smallest holds, of
        several kept shares the largest. One that is periodic makes them all so."""
        edits = tuple(edits)
        by_factor: dict[float, list[IntArray]] = {}
        for edit in edits:
            for scale in edit.scales:
                by_factor.setdefault(scale.factor, []).append(scale.rows)
        return Edit(
            scales=tuple(Scale(distinct(np.concatenate(rows)), factor) for factor, rows in by_factor.items()),
            removed_ops=_merged(edit.removed_ops for edit in edits),
            unsynced=_merged(edit.unsynced for edit in edits),
            overlapped=_merged(edit.overlapped for edit in edits),
            kept_share=max((edit.kept_share for edit in edits), default=0.0),
            host_factor=min((edit.host_factor for edit in edits), default=1.0),
            is_periodic=any(edit.is_periodic for edit in edits),
        )


def _merged(parts: Iterable[IntArray]) -> IntArray:
    arrays = list(parts)
    return distinct(np.concatenate(arrays)) if arrays else no_rows()
