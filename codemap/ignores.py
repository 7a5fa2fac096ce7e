"""Comments by which a person silences findings: `# torchtraceap: ignore[slug, slug]`, or without slugs for all."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..analyzer.findings import Finding

_COMMENT = re.compile(r"#\s*torchtraceap:\s*ignore(?:\[(?P<names>[^\]]*)\])?")


def is_ignored(finding: Finding, lines: Sequence[str]) -> bool:
    """Whether a comment on one of the lines of the finding's place names its slug or code, or all findings.

    `lines[0]` is line 1; with or without line ends.
    """
    where = finding.location
    if where is None:
        return False
    return any(_silences(line, finding) for line in lines[where.line - 1 : where.end_line])


def ignore_comment(line: str, slug: str) -> tuple[int, str]:
    """Where in `line` (without its end, columns from 1) to insert what, so that findings of `slug` are silenced there.

    A comment that already silences others gets one name more.
    """
    present = _COMMENT.search(line)
    if present is not None and present["names"] is not None:
        names = present["names"]
        return present.end("names") + 1, f", {slug}" if names.strip() else slug
    return len(line.rstrip()) + 1, f"  # torchtraceap: ignore[{slug}]"


def _silences(line: str, finding: Finding) -> bool:
    for comment in _COMMENT.finditer(line):
        if comment["names"] is None or {finding.slug, finding.code} & {n.strip() for n in comment["names"].split(",")}:
            return True
    return False
