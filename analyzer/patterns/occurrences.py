"""Occurrences by the site of the program that they belong to."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..timeline.model import Timeline
from ..timeline.sites import group_by_site
from .base import Occurrence


def by_site(timeline: Timeline, occurrences: Iterable[Occurrence]) -> list[tuple[Occurrence, ...]]:
    """The occurrences, each with an anchor of its own, grouped by site; in order of their anchors."""
    by_anchor = {occurrence.anchor: occurrence for occurrence in occurrences}
    anchors = np.array(sorted(by_anchor), dtype=np.int64)
    return [tuple(by_anchor[row] for row in group.tolist()) for group in group_by_site(timeline, anchors)]
