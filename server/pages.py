"""Where the page behind a finding's link lies."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parent.parent / "docs" / "patterns"
_INSTALLED = Path(sys.prefix) / "share" / "torchtraceap" / "docs" / "patterns"


@cache
def page_uri(slug: str) -> str | None:
    """The file URI of a pattern's page: the repository's when installed editable, else the installed one."""
    for folder in (_CHECKOUT, _INSTALLED):
        page = folder / f"{slug}.md"
        if page.is_file():
            return page.as_uri()
    return None
