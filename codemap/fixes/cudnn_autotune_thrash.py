"""cuDNN tries kernels for every new size: switch the trials off where they are switched on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...analyzer.findings import Finding, Fix, Related, Safety
from ..workspace import Workspace
from .base import Case, Confirmation, Cure, DeviceFacts, Fixer
from .cudnn_flags import Setting, benchmark_settings
from .edits import Patch
from .scene import scene

_SLUG = "cudnn-autotune-thrash"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    settings = [setting for setting in benchmark_settings(case.workspace) if setting.is_on is not False]
    if not settings:
        return None
    answer = _confirmation(settings[0])
    runs = Related("a convolution that tries kernels", case.location)
    return Confirmation(answer.location, answer.fixes, (runs,), answer.message)


def _confirmation(setting: Setting) -> Confirmation:
    file = setting.outline
    place = file.location(file.statement(setting.value))
    if setting.is_on is None:
        return Confirmation(place, (), (), "the run decides the flag: pass False where sizes vary")
    patch = Patch(file)
    patch.replace(setting.value, "False")
    return Confirmation(place, (Fix(_SLUG, "Switch the trials off", Safety.SAFE, patch.edits()),))


def _search(finding: Finding, workspace: Workspace, device: DeviceFacts) -> Sequence[Confirmation]:
    """The flag is looked up in the whole workspace anyway."""
    if device.is_cpu:
        return []
    return [_confirmation(setting) for setting in benchmark_settings(workspace) if setting.is_on is not False]


FIXER = Fixer(
    _SLUG,
    _confirm,
    _search,
    cure=Cure(re.compile(r"cudnn\.benchmark\s*=\s*False"), is_elsewhere=True),
)
