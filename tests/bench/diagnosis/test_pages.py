from __future__ import annotations

import re

import pytest

from bench.diagnosis.pages import FOLDER, page_of
from torchtraceap.analyzer.patterns.registry import all_patterns


@pytest.mark.parametrize("slug", [pattern.slug for pattern in all_patterns()])
def test_every_page_says_what_it_is_without_a_figure(slug: str):
    page = page_of(slug)
    assert page.head.endswith(".")
    assert len(page.head) <= 240
    assert not any(re.search(r"\b\d", sentence) for sentence in page.why)


def test_most_pages_say_why():
    slugs = [path.stem for path in FOLDER.glob("*.md")]
    assert sum(bool(page_of(slug).why) for slug in slugs) > 0.8 * len(slugs)
