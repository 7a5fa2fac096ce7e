"""Locating events in a workspace that may have changed since they were recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..analyzer.findings import Hotspot, How, Location
from ..analyzer.timeline.model import Timeline
from .drift import Drift, Stale
from .locate import Locator
from .recorded import RecordedFiles
from .statements import Place
from .workspace import Workspace


class FollowingLocator(Locator):
    """Locates in the recorded texts, and answers with places in those of today."""

    def __init__(self, timeline: Timeline, workspace: Workspace, drift: Drift) -> None:
        super().__init__(timeline, drift.workspace)
        self._drift = drift
        self._stale: dict[int, str] = {}
        self._files = super().recorded_files
        if self._files is not None and drift.is_any:
            recorded = {matched.path for matched in self._stacks.paths.values()}
            paths = {now for path in recorded for now in drift.current_paths(path)}
            self._files = RecordedFiles(workspace, paths) if paths or not recorded else None

    @property
    def recorded_files(self) -> RecordedFiles | None:
        """The files of today that the recording may have run."""
        return self._files

    def locate(self, row: int) -> Place | None:
        """The place of event `row` in the source of today; None if there is none any more, see `stale`."""
        place = super().locate(row)
        now = None if place is None else self._drift.follow(place)
        if isinstance(now, Stale):
            self._stale[row] = now.reason
            return None
        return now

    def stale(self, row: int) -> str:
        """Why an event that had a place has none today; "" for one that has, or never had."""
        return self._stale.get(row, "")

    def of_today(self, spots: Iterable[Hotspot]) -> tuple[Hotspot, ...]:
        """Figures of functions as they were recorded, at those of today; without those that are gone."""
        found: list[Hotspot] = []
        for spot in spots:
            where = Location(spot.path, spot.line, 1, spot.line, 1, spot.qualname, How.STACK)
            now = self._drift.location(where)
            if isinstance(now, Location):
                found.append(replace(spot, path=now.path, line=now.line, qualname=now.qualname))
        return tuple(found)
