"""Rows of the calibration: places by way, grain and class of confidence, and whether they are too sure."""

from __future__ import annotations

from bench.codemap.calibration import LEAST, Judged, calibrate
from torchtraceap.analyzer.findings import Grain, How, Location


def judged(count: int, right: int, confidence: float, how: How = How.ORDER, grain: Grain = Grain.LINE) -> list[Judged]:
    where = Location("a.py", 1, 1, 1, 2, "f", how, confidence, grain)
    return [Judged(where, number < right) for number in range(count)]


def test_places_that_are_less_often_right_than_they_say_are_too_sure() -> None:
    rows = list(calibrate([*judged(200, 190, 0.95), *judged(200, 100, 0.78), *judged(LEAST - 1, 0, 0.5)]))
    assert [(row.upper, row.count, row.is_honest) for row in rows] == [
        (0.97, 200, True),
        (0.8, 200, False),
        (0.5, LEAST - 1, True),
    ]
    assert [round(row.right, 2) for row in rows] == [0.95, 0.5, 0.0]


def test_ways_and_grains_are_told_apart() -> None:
    places = [*judged(3, 3, 0.6, How.MODULE, Grain.FUNCTION), *judged(3, 1, 0.6, How.MODULE), *judged(3, 0, 0.6)]
    rows = [(row.how, row.grain, row.count) for row in calibrate(places)]
    assert rows == [(How.MODULE, Grain.FUNCTION, 3), (How.MODULE, Grain.LINE, 3), (How.ORDER, Grain.LINE, 3)]
