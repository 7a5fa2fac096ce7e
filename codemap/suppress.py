"""`# torchtraceap: ignore[slug]` comments: what the author of the code does not want to hear of."""

from __future__ import annotations

import re

from ..analyzer.findings import Location
from .source import SourceFile

_COMMENT = re.compile(r"#\s*torchtraceap\s*:\s*ignore\b(?:\s*\[(?P<names>[^\]]*)\])?", re.IGNORECASE)


def is_suppressed(file: SourceFile, location: Location, code: str, slug: str) -> bool:
    """Whether a comment on one of the statement's lines names the finding (by slug or code), or names nothing."""
    for line in file.lines[location.line - 1 : location.end_line]:
        for comment in _COMMENT.finditer(line):
            if comment["names"] is None:
                return True
            names = {name.strip().lower() for name in comment["names"].split(",")}
            if names & {slug.lower(), code.lower()}:
                return True
    return False


def suppressing(line: str, slug: str) -> tuple[int, str]:
    """Where in `line` (without its end; columns from 1) to insert what, so that findings of `slug` are silenced there.

    A comment that silences others already gets one name more.
    """
    present = _COMMENT.search(line)
    if present is not None and present["names"] is not None:
        return present.end("names") + 1, f", {slug}" if present["names"].strip() else slug
    return len(line.rstrip()) + 1, f"  # torchtraceap: ignore[{slug}]"
