"""Patterns are found by their files, and are what the catalogue says of them."""

import re
from pathlib import Path

from tests.shared import shared
from torchtraceap.analyzer import patterns
from torchtraceap.analyzer.patterns.base import Pattern
from torchtraceap.analyzer.patterns.registry import all_patterns, pattern_by_slug, selected_patterns

FOLDER = Path(patterns.__file__).parent


def test_every_module_that_defines_a_pattern_is_found():
    defining = {path.stem for path in FOLDER.glob("*.py") if "\nPATTERN = Pattern(" in path.read_text(encoding="utf-8")}
    assert {pattern.slug.replace("-", "_") for pattern in all_patterns()} == defining
    assert len(defining) >= 14


def test_codes_are_unique_sorted_and_well_formed():
    codes = [pattern.code for pattern in all_patterns()]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch(r"TAP\d{3}", code) for code in codes)


def test_every_rule_explains_itself():
    for pattern in all_patterns():
        text = (FOLDER / f"{pattern.slug.replace('-', '_')}.py").read_text(encoding="utf-8")
        assert text.startswith(f'"""{pattern.slug}: '), pattern.slug
        for heading in ("Trace: ", "Gate: "):
            assert f"\n{heading}" in text, (pattern.slug, heading)


def test_every_pattern_of_the_catalogue_is_there():
    text = shared("CATALOGUE.md").read_text("utf-8")
    named = dict(re.findall(r"^\| (TAP\d{3}) \| ([a-z0-9-]+) \|", text, re.MULTILINE))
    named |= dict(re.findall(r"`(TAP\d{3}) ([a-z0-9-]+)`", text))
    assert {pattern.code: pattern.slug for pattern in all_patterns()} == named
    assert len(named) > 85


def test_every_pattern_has_a_page():
    pages = {path.stem for path in (FOLDER.parents[1] / "docs" / "patterns").glob("*.md")}
    assert pages == {pattern.slug for pattern in all_patterns()}


def test_groups_go_with_the_hundreds_of_the_codes():
    groups = {("99" if "TAP99" in p.code else p.code[3], p.group) for p in all_patterns()}
    assert len(groups) == len({hundred for hundred, _ in groups}) == len({group for _, group in groups}) == 11


def test_selection_by_slug_or_code():
    chosen: Pattern | None = pattern_by_slug("unfused-attention")
    assert chosen is not None
    assert selected_patterns(("TAP601",), ()) == (chosen,)
    assert selected_patterns(("unfused-attention", "TAP101"), ("TAP601",)) == (
        pattern_by_slug("dataloader-in-main-process"),
    )
    assert chosen not in selected_patterns((), ("unfused-attention",))
    assert pattern_by_slug("no-such-pattern") is None
