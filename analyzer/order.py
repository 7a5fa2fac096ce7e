"""The order in which to do findings."""

from __future__ import annotations

from .findings import Finding, Severity, Stage

_BY_SEVERITY = {Severity.WARNING: 0, Severity.INFORMATION: 1, Severity.HINT: 2}
_BY_STAGE = {Stage.ARCHITECTURE: 0, Stage.IMPLEMENTATION: 1, Stage.HARDWARE: 2}


def in_order_of_work(finding: Finding) -> tuple[int, bool, int, float, str, int]:
    """Sort key: what matters most, then what stays worth doing, then architecture before implementation before
    hardware, then the greater saving."""
    return (
        _BY_SEVERITY[finding.severity],
        bool(finding.removed_by),
        stage_rank(finding),
        -finding.saving_us_per_step,
        finding.code,
        finding.location.line if finding.location else 0,
    )


def stage_rank(finding: Finding) -> int:
    """How late the finding's stage comes, from 0."""
    return _BY_STAGE[finding.stage]
