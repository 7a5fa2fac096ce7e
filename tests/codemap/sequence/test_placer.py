"""Programs of differing styles, recorded without stacks: every operator must find its line, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import PROGRAMS
from .recorded import Placed, place_program


def _shares(placed: list[Placed]) -> tuple[float, float]:
    """Share placed on the right line, and on a wrong one."""
    right = sum(one.found == one.line for one in placed)
    wrong = sum(one.found not in (0, one.line) for one in placed)
    return right / len(placed), wrong / len(placed)


@pytest.mark.parametrize("shapes", [True, False], ids=["shapes", "names"])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_every_operator_finds_its_line(name: str, shapes: bool, tmp_path: Path) -> None:
    placed = place_program(PROGRAMS[name], tmp_path, shapes=shapes)
    right, wrong = _shares(placed)
    misses = [(one.name, one.line, one.found) for one in placed if one.found != one.line]
    assert right >= 0.95, misses[:20]
    assert wrong <= 0.02, misses[:20]
