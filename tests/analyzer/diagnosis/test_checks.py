from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtraceap.analyzer.diagnosis.answer import GivenClaim
from torchtraceap.analyzer.diagnosis.checks import check_cause, check_claims
from torchtraceap.analyzer.diagnosis.known import Known

from .dossiers import made_dossier

KNOWN = Known(made_dossier())


def is_kept(text: str, *ids: str) -> bool:
    return bool(check_claims([GivenClaim(text=text, evidence=ids)], KNOWN).claims)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("The host reads 3 values per step and waits 9.12 ms.", ("count", "waiting")),
        ("It waits 9123 us, or 0.009 s.", ("waiting",)),
        ("It waits 9,123 µs of 45.1 ms.", ("waiting", "step")),
        ("About 18 % would be saved.", ("saving-pct",)),
        ("The first stage is 93 % sure.", ("probability",)),
        ("aten::item runs x3, three times per step.", ("t4",)),
        ("Conv2d_0 turns 8x3x224x224 into maps of 112x112.", ("l2",)),
        ("On a V100 with torch 2.4 line 17 is it.", ("count",)),
        ("`total = 0.0` is where the sum starts.", ("count",)),
        ("One of the calls waits for the device.", ("t4",)),
    ],
)
def test_what_the_evidence_says_is_shown(text: str, ids: tuple[str, ...]):
    assert is_kept(text, *ids)


@pytest.mark.parametrize(
    "text",
    [
        "It waits 10 ms.",
        "It waits 9.13 ms.",
        "It waits 9.12 s.",
        "It waits 9.12.",
        "It waits 9.12 minutes.",
        "It waits 9.12 ms per image.",
        "It waits 9 %.",
        "It waits 9,12 ms.",
        "It waits 9. 12 ms.",
        "It waits 0 s.",
        "It waits 1e1 ms.",
        "It waits twelve ms.",
        "It waits nine point nine ms.",
        "It waits a hundred ms.",
        "It waits dozens of ms.",
        "It waits XII ms.",
        "It waits \u2491 ms.",
        "It waits \uff11\uff12 ms.",
        "It waits 1\u200b2 ms.",
        "It waits 9\u00bd ms.",
        "It waits 10\u00b2 ms.",
        "It waits \u5341 ms.",
        "It waits &#49;&frac12; ms.",
        "It waits \\u0031 ms.",
        "It is twice as slow, 2x.",
        "It is tenfold.",
        "Conv2d_77 waits.",
        "It costs900ms here.",
        "With num_workers=7 it waits.",
        "Line 99 waits.",
        "As of torch 2.9 it waits.",
        "Maps of 7x7 wait.",
        "It waits 1/9 of it.",
        "It waits $5 long.",
        "See [this](command:workbench.action.quit).",
        "See <img src=x onerror=y>.",
        "See https://example.org now.",
        "See javascript:alert(n).",
    ],
)
def test_what_it_does_not_say_is_not(text: str):
    assert not is_kept(text, "waiting")


def test_a_cause_may_hold_any_figure_of_the_evidence_and_no_other():
    assert check_cause("loss.item() waits 9.12 of 45.1 ms.", KNOWN) == "loss.item() waits 9.12 of 45.1 ms."
    assert check_cause("loss.item() waits 777 ms.", KNOWN) == ""
    assert check_cause("See [this](command:x).", KNOWN) == ""


def test_ids_must_be_there():
    assert not is_kept("It waits.")
    assert not is_kept("It waits.", "waiting", "e99")


def test_a_figure_of_evidence_that_is_not_named_is_false():
    assert not is_kept("It waits 9.12 ms.", "count")


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "milliseconds": 1e-3}


@given(
    st.floats(0.001, 1e7),
    st.integers(0, 3),
    st.sampled_from(sorted(_UNITS)),
    st.booleans(),
    st.sampled_from(["", " ", "-"]),
)
def test_no_time_but_the_evidence_s_is_shown(value: float, decimals: int, unit: str, grouped: bool, gap: str):
    text = f"{value:,.{decimals}f}" if grouped else f"{value:.{decimals}f}"
    written = float(text.replace(",", ""))
    right = 9.1234e-3 / _UNITS[unit]
    is_close = math.isclose(written, right, abs_tol=0.50001 * 10.0**-decimals)
    assert is_close or not is_kept(f"It waits {text}{gap}{unit} per step.", "waiting")


@given(st.text(max_size=60))
def test_any_text_is_checked_and_what_is_shown_is_its_own_plain_form(text: str):
    claims = check_claims([GivenClaim(text=text, evidence=("waiting",))], KNOWN).claims
    for claim in claims:
        assert claim.text.isprintable()
        assert check_claims([GivenClaim(text=claim.text, evidence=("waiting",))], KNOWN).claims == claims
