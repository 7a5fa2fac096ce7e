"""Convolutions in fallback code: switch the library on where the project switched it off."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...analyzer.findings import Finding, Fix, Related, Safety
from ..workspace import Workspace
from .base import Case, Confirmation, Cure, DeviceFacts, Fixer
from .cudnn_flags import Setting, switched_off
from .edits import Patch
from .scene import scene

_SLUG = "fallback-kernel"
_NAMES = {"cudnn": "cuDNN", "mkldnn": "oneDNN"}


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    found = _search(case.finding, case.workspace, case.device)
    if not found:
        return None
    slow = Related("a convolution in fallback code", case.location)
    return Confirmation(found[0].location, found[0].fixes, (slow,))


def _search(finding: Finding, workspace: Workspace, device: DeviceFacts) -> Sequence[Confirmation]:
    """The flag is looked up in the whole workspace, wherever the time is spent."""
    library = "mkldnn" if device.is_cpu else "cudnn"
    return [_switched_on(setting, library) for setting in switched_off(workspace, library)]


def _switched_on(setting: Setting, library: str) -> Confirmation:
    file = setting.outline
    patch = Patch(file)
    patch.replace(setting.value, "True")
    fix = Fix(_SLUG, f"Switch {_NAMES[library]} on", Safety.SAFE, patch.edits())
    return Confirmation(file.location(file.statement(setting.value)), (fix,))


FIXER = Fixer(_SLUG, _confirm, _search, cure=Cure(re.compile(r"enabled\s*=\s*True"), is_elsewhere=True))
