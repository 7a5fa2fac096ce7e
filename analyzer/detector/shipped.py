"""The detector that the package comes with, as those who start analyses hold it: loaded once, when first needed."""

from __future__ import annotations

from ..timeline.model import Timeline
from .scorer import Detector, Look
from .session import DetectorError


class Shipped:
    """Loads the shipped models for the first trace. If that fails it is not tried again."""

    def __init__(self) -> None:
        self._detector: Detector | None = None
        self._error: DetectorError | None = None

    def look(self, timeline: Timeline) -> Look:
        """As `Detector.look`. Raises DetectorError, too, if the models cannot be loaded."""
        if self._error is not None:
            raise self._error
        if self._detector is None:
            try:
                self._detector = Detector.load()
            except DetectorError as error:
                self._error = error
                raise
        return self._detector.look(timeline)
