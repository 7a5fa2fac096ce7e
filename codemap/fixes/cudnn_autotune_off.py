"""Convolutions of fixed sizes on guessed kernels: let cuDNN try them once."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

from ...analyzer.findings import Fix, Related, Safety
from ..workspace import Workspace
from .base import Case, Confirmation, Cure, Fixer
from .cudnn_flags import benchmark_settings, wants_repeatable
from .edits import Patch
from .imports import head_end, insert_at_head, name_for
from .outline import Outline
from .scene import scene, searcher

_SLUG = "cudnn-autotune-off"
_WORDS = ("model(", "net(", "__main__")
_RUNS = (ast.If, ast.For, ast.While, ast.With, ast.Expr)
"""Statements that a module of definitions has no need of."""
_TITLE = "Let cuDNN choose kernels by trial"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    settings = benchmark_settings(case.workspace)
    if any(setting.is_on is not False for setting in settings):
        return None
    related = (Related("a convolution", case.location),)
    if wants_repeatable(case.workspace):
        return Confirmation(case.location, (), (), "the project asks for repeatable results, which trials would undo")
    if settings:
        file, value = settings[0].outline, settings[0].value
        patch = Patch(file)
        patch.replace(value, "True")
        # Somebody switched it off, and may have had a reason.
        fix = Fix(_SLUG, _TITLE, Safety.UNSAFE, patch.edits())
        return Confirmation(file.location(file.statement(value), case.location), (fix,), related)
    entry = view.frames[-1].outline
    head = head_end(entry)
    place = entry.location(head, case.location) if head is not None else case.location
    # A module of a package that no stack names as the program may be imported by programs that want otherwise.
    is_program = bool(case.callers) or not _is_in_package(case.workspace, entry.path)
    return Confirmation(place, (_switch_on(entry, Safety.SAFE if is_program else Safety.UNSAFE),), related)


def _is_in_package(workspace: Workspace, path: str) -> bool:
    return str(PurePosixPath(path).with_name("__init__.py")) in workspace.paths()


def _switch_on(file: Outline, safety: Safety) -> Fix:
    patch = Patch(file)
    name = name_for(patch, "torch.backends.cudnn.benchmark")
    insert_at_head(patch, "", f"{name} = True")
    return Fix(_SLUG, _TITLE, safety, patch.edits())


def _words_of(file: Outline) -> tuple[str, ...]:
    """A file that is run, not one that only gives names: the setting is the program's to make, no library's."""
    return _WORDS if any(isinstance(one, _RUNS) and not _is_text(one) for one in file.tree.body) else ()


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call)


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, _WORDS, _words_of),
    required=True,
    cure=Cure(re.compile(r"benchmark\s*=\s*True"), is_elsewhere=True),
)
