"""The shipped model: what is said of it is what the card says."""

from pathlib import Path

from torchtraceap.analyzer.detector.card import read_card
from torchtraceap.analyzer.detector.card_text import as_page
from torchtraceap.analyzer.detector.scorer import SHIPPED, Detector
from torchtraceap.analyzer.patterns.registry import all_patterns

PAGE = Path(__file__).parents[3] / "docs" / "detector-model.md"
MOST_BYTES = 10e6


def test_the_page_is_made_of_the_card():
    assert PAGE.read_text("utf-8") == as_page(read_card(SHIPPED))


def test_the_shipped_models_load_and_are_small():
    detector = Detector.load()
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < MOST_BYTES
    assert set(detector.card.kinds) <= {pattern.slug for pattern in all_patterns()}


def test_nothing_of_the_test_was_learned_from():
    data = read_card(SHIPPED).data
    assert not set(data.families) & set(data.test_families)
    assert not set(data.devices) & set(data.test_devices)
