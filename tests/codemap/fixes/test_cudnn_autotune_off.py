"""Whose setting cuDNN's trials are."""

from __future__ import annotations

from pathlib import Path

from torchtraceap.analyzer.findings import Safety
from torchtraceap.codemap.fixes.base import DeviceFacts
from torchtraceap.codemap.fixes.registry import fixer_of
from torchtraceap.codemap.project import open_workspace

from . import pairs

_MODULE = """import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 8, 3))
if __name__ == "__main__":
    y = net(torch.rand(1, 3, 32, 32))
"""


def _safeties(files: dict[str, str]) -> dict[str, Safety]:
    fixer = fixer_of("cudnn-autotune-off")
    assert fixer is not None and fixer.search is not None
    found = fixer.search(pairs.finding(fixer.slug), open_workspace(Path("none"), files), DeviceFacts(False, (8, 0)))
    return {one.location.path: fix.safety for one in found for fix in one.fixes}


def test_a_program_may_set_it_and_a_module_of_a_package_only_with_care() -> None:
    assert _safeties({"run.py": _MODULE}) == {"run.py": Safety.SAFE}
    assert _safeties({"nets/__init__.py": "", "nets/plain.py": _MODULE}) == {"nets/plain.py": Safety.UNSAFE}
    assert _safeties({"__init__.py": "", "plain.py": _MODULE}) == {"plain.py": Safety.UNSAFE}
