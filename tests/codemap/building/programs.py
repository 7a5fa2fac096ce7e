"""Programs to evaluate: from text, or from the files in `styles`."""

from __future__ import annotations

import runpy
import sys
from functools import cache
from pathlib import Path
from typing import Any

from torchtraceap.codemap.building.heap import Budget
from torchtraceap.codemap.building.program import STEPS_OF_ONE, Program
from torchtraceap.codemap.building.roots import descendants, limited
from torchtraceap.codemap.building.values import ModuleValue, Value
from torchtraceap.codemap.knowledge import Knowledge
from torchtraceap.codemap.project import open_workspace

STYLES = Path(__file__).parent / "styles"
Shapes = dict[str, tuple[str, dict[str, tuple[int, ...] | None]]]
"""Module path -> class name, and the shape of each of its own parameters and buffers."""


def program_in(root: Path) -> Program:
    """The program of a folder."""
    workspace = open_workspace(root)
    return Program(Knowledge(workspace), workspace)


def program_of(tmp_path: Path, **texts: str) -> Program:
    """The program of some files, by name without `.py`."""
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    return program_in(tmp_path)


def named(program: Program, path: str, name: str) -> Value:
    """What a name of a file's top level stands for."""
    machine = program.machine
    return limited(machine, Budget(STEPS_OF_ONE), lambda: machine.lookup(name, machine.file(path)))


def value_of(tmp_path: Path, text: str, name: str = "value") -> Value:
    """What a name of a file stands for that is a program of its own."""
    return named(program_of(tmp_path, main=text), "main.py", name)


@cache
def style(name: str) -> tuple[Program, str]:
    """The program of one style, and the path of its file."""
    folder, _, _ = name.rpartition("/")
    program = program_in(STYLES / folder)
    return program, name.removeprefix(f"{folder}/") + ".py"


@cache
def ran(name: str) -> dict[str, Any]:
    """The names of a style's file after Python ran it."""
    path = STYLES / f"{name}.py"
    sys.path.insert(0, str(path.parent))
    try:
        return runpy.run_path(str(path))
    finally:
        sys.path.remove(str(path.parent))


def evaluated_shapes(model: ModuleValue) -> Shapes:
    """What the evaluator says of a model."""
    seen: set[int] = set()
    found: Shapes = {}
    for path, module, is_certain in descendants(model):
        assert is_certain, path
        assert not module.has_more, path
        own = {name: tensor.sizes for name, tensor in module.tensors() if id(tensor) not in seen}
        seen.update(id(tensor) for _, tensor in module.tensors())
        found[path] = (module.name, own)
    return found


def real_shapes(model: Any) -> Shapes:
    """What torch says of a model."""
    parameters = {name: tuple(value.shape) for name, value in (*model.named_parameters(), *model.named_buffers())}
    found: Shapes = {path: (type(module).__name__, {}) for path, module in model.named_modules()}
    for name, shape in parameters.items():
        path, _, own = name.rpartition(".")
        found[path][1][own] = shape
    return found
