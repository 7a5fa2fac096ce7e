"""Models as a recording run saw them."""

from __future__ import annotations

from pathlib import PurePosixPath

from ..analyzer.trace.recording import RecordedModule, Recording
from .building.roots import MOST_LEVELS
from .knowledge import Knowledge
from .modules import At, Basis, Module, Tensor


def recorded_models(recording: Recording, known: Knowledge) -> tuple[Module, ...]:
    """The recorded models; files are taken for those of the workspace with the longest common ending."""
    files = tuple(_workspace_path(file, known) for file in recording.files)
    by_path = {module.path: module for module in recording.modules}
    below: dict[str, list[RecordedModule]] = {}
    tops: list[RecordedModule] = []
    for module in recording.modules:
        if module.path.count(".") > MOST_LEVELS:
            continue
        parent = _parent(module.path, by_path)
        if parent is None:
            tops.append(module)
        else:
            below.setdefault(parent, []).append(module)
    return tuple(_convert(top, below, files, known, top.path) for top in tops)


def _parent(path: str, known: dict[str, RecordedModule]) -> str | None:
    """The nearest recorded module above a path; None for the root of a model."""
    while path:
        path = path.rpartition(".")[0]
        if path in known:
            return path
    return None


def _convert(
    module: RecordedModule, below: dict[str, list[RecordedModule]], files: tuple[str, ...], known: Knowledge, root: str
) -> Module:
    children = [
        _convert(child, below, files, known, root) for child in below.get(module.path, ()) if child is not module
    ]
    return Module(
        path=_relative(module.path, root),
        class_name=module.class_name,
        origin=module.origin,
        basis=Basis.RECORDING,
        defined_at=_at(module.file, module.line, files, known),
        built_at=_at(module.defined_file, module.defined_line, files, known),
        arguments=dict(module.arguments),
        tensors=tuple(Tensor(p.name, p.shape, p.dtype, p.is_trainable, p.is_buffer) for p in module.parameters),
        children=tuple(children),
        feeds=tuple(_relative(path, root) for path in module.feeds),
        inputs=module.inputs,
        outputs=module.outputs,
        calls_per_step=module.calls_per_step,
    )


def _relative(path: str, root: str) -> str:
    return path.removeprefix(root).removeprefix(".") if root else path


def _at(file: int, line: int, files: tuple[str, ...], known: Knowledge) -> At | None:
    path = files[file] if 0 <= file < len(files) else ""
    if not path or line <= 0:
        return None
    function = known.file(path).function_at(line)
    return At(path, line, function.qualname if function is not None else "<module>")


def _workspace_path(file: str, known: Knowledge) -> str:
    """The file of the workspace with the longest common ending; "" if none has its name, or several fit as well."""
    parts = PurePosixPath(file.replace("\\", "/")).parts
    if not parts:
        return ""
    scored = [
        (_common(parts, PurePosixPath(path).parts), path)
        for path in known.workspace.paths()
        if path.rpartition("/")[2] == parts[-1]
    ]
    best = max((score for score, _ in scored), default=0)
    fitting = [path for score, path in scored if score == best]
    return fitting[0] if len(fitting) == 1 else ""


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    count = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        count += 1
    return count
