"""How figures are written in messages."""

import pytest

from torchtraceap.analyzer.figures import format_ms, format_pct


@pytest.mark.parametrize(
    ("value_us", "spread_us", "text"),
    [
        (22_345, 0, "22.3"),
        (9_812, 0, "9.81"),
        (6_100, 0, "6.10"),
        (123_456, 0, "123"),
        (1_234_567, 0, "1230"),
        (23.1, 0, "0.0231"),
        (0, 0, "0"),
        (22_345, 80, "22.3"),
        (22_345, 800, "22.3"),
        (22_345, 3_000, "22"),
        (6_100, 1_500, "6"),
        (6_100, 60_000, "6"),
        (float("nan"), 0, "0"),
    ],
)
def test_three_figures_and_none_that_the_spread_makes_noise(value_us, spread_us, text):
    assert format_ms(value_us, spread_us) == text


@pytest.mark.parametrize(("value", "text"), [(27.4, "27 %"), (0.96, "1 %"), (0.4, "under 1 %"), (100.0, "100 %")])
def test_shares_are_whole(value, text):
    assert format_pct(value) == text
