"""One recording in several folders: what lies in files of which."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

import msgspec

from ..analyzer.findings import Finding, How
from .messages import Analyzed


def located(answer: Analyzed) -> Analyzed:
    """What the recording itself places in a folder: by the files on its stacks, not by what would fit there as well."""
    return _kept(answer, lambda finding: finding.location is not None and finding.location.how is How.STACK)


def without(answer: Analyzed, slugs: Set[str]) -> Analyzed:
    """An answer without what has no place here and was found in another folder."""
    return _kept(answer, lambda finding: finding.location is not None or finding.slug not in slugs)


def _kept(answer: Analyzed, is_wanted: Callable[[Finding], bool]) -> Analyzed:
    kept = [number for number, finding in enumerate(answer.report.findings) if is_wanted(finding)]
    findings = tuple(answer.report.findings[number] for number in kept)
    return msgspec.structs.replace(
        answer,
        report=replace(answer.report, findings=findings),
        confirmed=frozenset(new for new, old in enumerate(kept) if old in answer.confirmed),
        anchors=tuple(answer.anchors[number] for number in kept),
        dossiers=tuple(answer.dossiers[number] for number in kept) if answer.dossiers else (),
    )
