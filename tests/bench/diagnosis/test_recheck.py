from __future__ import annotations

import pytest

from bench.diagnosis.recheck import false_figures
from tests.bench.diagnosis import made
from torchtraceap.analyzer.diagnosis.answer import GivenClaim


def _false(text: str, *ids: str) -> int:
    return len(false_figures([GivenClaim(text=text, evidence=ids)], made.dossier()))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("It takes 9.81 ms of 22.3 ms.", ("cost", "step")),
        ("It takes 10 ms.", ("cost",)),
        ("It takes 9812 us.", ("cost",)),
        ("27 % would go away, 6.1 ms.", ("saving", "saving-pct")),
        ("SwinBlock_3 has 31.2 % of the step.", ("l1",)),
        ("train.py(12): train_3_epochs takes 9.81 ms.", ("t2",)),
        ("aten::item runs 12 times per step.", ("t3",)),
        ("No figure at all.", ("cost",)),
    ],
)
def test_true_figures_pass(text: str, ids: tuple[str, ...]):
    assert _false(text, *ids) == 0


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("It takes 9.9 ms.", ("cost",)),
        ("It takes 9.81 ms.", ("step",)),
        ("It takes 9.81 us.", ("cost",)),
        ("It takes 9.81 %.", ("cost",)),
        ("It takes 98 ms.", ("cost",)),
        ("13 values are read.", ("reads",)),
        ("SwinBlock_3 has 41.2 % of the step.", ("l1",)),
    ],
)
def test_false_figures_are_found(text: str, ids: tuple[str, ...]):
    assert _false(text, *ids) == 1
