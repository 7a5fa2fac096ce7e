"""Where the page behind a finding's link lies."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parent.parent / "docs" / "patterns"
_INSTALLED = Path(sys.prefix) / "share" / "torchtraceap" / "docs" / "patterns"
_WHY = re.compile(r"^#+ Why\b.*\n+(?P<paragraph>(?:.+\n?)+)", re.MULTILINE | re.IGNORECASE)


def page_uri(slug: str) -> str | None:
    """The file URI of a pattern's page: the repository's when installed editable, else the installed one."""
    page = _page(slug)
    return page.as_uri() if page is not None else None


@cache
def why(slug: str) -> str:
    """Why the pattern costs time: the first paragraph of its page's section "Why ...", on one line; "" if none."""
    page = _page(slug)
    section = _WHY.search(page.read_text("utf-8")) if page is not None else None
    return " ".join(section["paragraph"].split()) if section else ""


@cache
def _page(slug: str) -> Path | None:
    pages = (folder / f"{slug}.md" for folder in (_CHECKOUT, _INSTALLED))
    return next((page for page in pages if page.is_file()), None)
