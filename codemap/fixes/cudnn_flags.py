"""Where a workspace sets the flags of `torch.backends.cudnn` and its like, and whether it wants repeatable results."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..workspace import Workspace
from .outline import Outline, last_name, outline

_CUDNN = "torch.backends.cudnn"


@dataclass(frozen=True, slots=True)
class Setting:
    """One place that gives the flag a value."""

    outline: Outline
    value: ast.expr

    @property
    def is_on(self) -> bool | None:
        """The value as written; None where the run decides."""
        return self.value.value if isinstance(self.value, ast.Constant) and isinstance(self.value.value, bool) else None


def benchmark_settings(workspace: Workspace) -> list[Setting]:
    """All places that set `cudnn.benchmark`: an assignment, `cudnn.flags(benchmark=...)`, a trainer's argument."""
    return [setting for file in _files(workspace, "benchmark") for setting in _settings(file)]


def switched_off(workspace: Workspace, library: str) -> list[Setting]:
    """All places that switch `cudnn` or `mkldnn` off: an assignment to `enabled`, `flags(enabled=False)`."""
    home = f"torch.backends.{library}"
    found: list[Setting] = []
    for file in _files(workspace, "enabled"):
        for node in file.statements:
            if isinstance(node, ast.Assign) and any(file.dotted(one) == f"{home}.enabled" for one in node.targets):
                found.append(Setting(file, node.value))
        for call in (*file.calls("flags"), *file.calls("set_flags")):
            if file.dotted(call.func).startswith(home):
                found += [Setting(file, one.value) for one in call.keywords if one.arg in ("enabled", "_enabled")]
    return [setting for setting in found if setting.is_on is False]


def wants_repeatable(workspace: Workspace) -> bool:
    """Whether the workspace asks for deterministic algorithms, which trials would undo."""
    for file in _files(workspace, "determinis"):
        if file.calls("use_deterministic_algorithms"):
            return True
        for node in file.statements:
            if not isinstance(node, ast.Assign) or getattr(node.value, "value", True) is False:
                continue
            if any(last_name(target) == "deterministic" for target in node.targets):
                return True
        for call in file.calls("Trainer"):
            if any(keyword.arg == "deterministic" for keyword in call.keywords):
                return True
    return False


def _settings(file: Outline) -> Iterator[Setting]:
    for node in file.statements:
        if isinstance(node, ast.Assign) and any(file.dotted(one) == f"{_CUDNN}.benchmark" for one in node.targets):
            yield Setting(file, node.value)
    for name in ("flags", "set_flags", "Trainer"):
        for call in file.calls(name):
            if name != "Trainer" and not file.dotted(call.func).startswith(_CUDNN):
                continue
            for keyword in call.keywords:
                if keyword.arg in ("benchmark", "_benchmark"):
                    yield Setting(file, keyword.value)


def _files(workspace: Workspace, word: str) -> Iterator[Outline]:
    for path in workspace.paths():
        text = workspace.text(path)
        if text is not None and word in text and (file := outline(workspace.file(path))) is not None:
            yield file
