"""Patterns are found by their files, and are what the catalogue says of them."""

import re
from pathlib import Path

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


def test_selection_by_slug_or_code():
    chosen: Pattern | None = pattern_by_slug("unfused-attention")
    assert chosen is not None
    assert selected_patterns(("TAP601",), ()) == (chosen,)
    assert selected_patterns(("unfused-attention", "TAP101"), ("TAP601",)) == (
        pattern_by_slug("dataloader-in-main-process"),
    )
    assert chosen not in selected_patterns((), ("unfused-attention",))
    assert pattern_by_slug("no-such-pattern") is None
