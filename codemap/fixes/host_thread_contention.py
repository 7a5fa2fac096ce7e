"""Too many threads: OpenCV's own in every worker, OMP_NUM_THREADS, or more workers than cores."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, Fixer
from .edits import Patch
from .imports import insert_at_head, name_for
from .loaders import loader_argument, loaders_at
from .outline import Outline, outline
from .resolve import Resolver, Value
from .samples import calls_behind
from .scene import scene, searcher
from .settings import constants

_SLUG = "host-thread-contention"
_MANY_WORKERS = 16
_FEW_WORKERS = 6
"""Per process that trains: four to six fill the cores of a usual host with several devices."""
_THREADS = frozenset({"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"})
_MANY_THREADS = 4
_QUICK = frozenset({"setNumThreads", "imread", "VideoCapture", "setUseOptimized", "destroyAllWindows"})
"""What OpenCV does in one thread anyway."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for loader in loaders_at(view):
        workers = _workers(view.resolver, loader)
        if workers == 0:
            continue
        for look in (_opencv, _environment, _many_workers):
            if (answer := look(view.resolver, loader, case)) is not None:
                return answer
    return None


def _workers(resolver: Resolver, loader: Value) -> int | None:
    """The number of workers, if the source says it."""
    literal = _literal(resolver, loader)
    return _number(literal) if literal is not None else None


def _literal(resolver: Resolver, loader: Value) -> Value | None:
    given = loader_argument(resolver, loader, "num_workers").value
    found = constants(resolver, given) if given is not None else []
    return found[0] if len(found) == 1 and isinstance(found[0].node, ast.Constant) else None


def _number(literal: Value) -> int | None:
    value = literal.node.value if isinstance(literal.node, ast.Constant) else None
    return value if isinstance(value, int) else None


def _opencv(resolver: Resolver, loader: Value, case: Case) -> Confirmation | None:
    """OpenCV in code that workers run, with nobody telling it how many threads to start."""
    if resolver.calls_of("setNumThreads"):
        return None
    for call in calls_behind(resolver, loader):
        assert isinstance(call.node, ast.Call)
        module, _, name = call.outline.dotted(call.node.func).rpartition(".")
        if module == "cv2" and name not in _QUICK:
            patch = Patch(call.outline)
            _tell_opencv(patch)
            fix = Fix(_SLUG, "One OpenCV thread per worker", Safety.SAFE, patch.edits())
            place = call.outline.location(call.outline.statement(call.node), case.location)
            related = (Related("its workers", loader.outline.location(loader.node, case.location)),)
            return Confirmation(place, (fix,), related, "OpenCV starts a thread per core in each worker")
    return None


def _tell_opencv(patch: Patch) -> None:
    """Add the setting behind the imports, or inside the `try` that imports OpenCV where it may be missing."""
    file = patch.outline
    imports = [one for one in file.statements if isinstance(one, ast.Import) and _imports_opencv(one)]
    if imports and file.parents[imports[0]] is not file.tree:
        item = next(item for item in imports[0].names if item.name == "cv2")
        patch.insert_line_after(imports[0], f"{item.asname or item.name}.setNumThreads(0)")
    else:
        insert_at_head(patch, "", f"{name_for(patch, 'cv2.setNumThreads')}(0)")


def _imports_opencv(statement: ast.Import) -> bool:
    return any(item.name == "cv2" for item in statement.names)


def _environment(resolver: Resolver, loader: Value, case: Case) -> Confirmation | None:
    """A number of OpenMP threads that every worker inherits."""
    for path in resolver.workspace.paths():
        text = resolver.workspace.text(path)
        file = outline(resolver.workspace.file(path)) if text is not None and "_NUM_THREADS" in text else None
        for number in _thread_numbers(file) if file is not None else ():
            assert file is not None
            patch = Patch(file)
            patch.replace(number, '"1"')
            fix = Fix(_SLUG, "One thread per process", Safety.UNSAFE, patch.edits())
            place = file.location(file.statement(number), case.location)
            return Confirmation(place, (fix,), (), "each worker starts as many threads as this says")
    return None


def _thread_numbers(file: Outline) -> Iterator[ast.Constant]:
    """The texts that a file gives to environment variables for numbers of threads, if they are many."""
    for node in file.nodes:
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=name))], value=ast.Constant() as number):
                is_ours = name in _THREADS
            case ast.Call(
                func=ast.Attribute(attr="setdefault"), args=[ast.Constant(value=name), ast.Constant() as number]
            ):
                is_ours = name in _THREADS
            case _:
                continue
        if is_ours and str(number.value).isdecimal() and int(str(number.value)) > _MANY_THREADS:
            yield number


def _many_workers(resolver: Resolver, loader: Value, case: Case) -> Confirmation | None:
    literal = _literal(resolver, loader)
    count = _number(literal) if literal is not None else None
    if literal is None or count is None or count < _MANY_WORKERS:
        return None
    patch = Patch(literal.outline)
    patch.replace(literal.node, str(_FEW_WORKERS))
    fix = Fix(f"{_SLUG}/workers", f"Load in {_FEW_WORKERS} worker processes", Safety.UNSAFE, patch.edits())
    place = loader.outline.location(loader.node, case.location)
    return Confirmation(place, (fix,), (), f"{count} workers per process compete for the host's cores")


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("DataLoader",)),
    required=True,
    cure=Cure(re.compile(r"setNumThreads\(0\)"), is_elsewhere=True),
)
