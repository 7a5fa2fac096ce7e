"""A constant computed in every call: keep it as a buffer, or remember what a function of sizes gave."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .bindings import FUNCTIONS, walk_scope
from .calls import edit_call
from .edits import Patch
from .imports import name_for
from .outline import Outline, find, last_name
from .resolve import Definition
from .scene import Scene, scene, searcher
from .unchanging import FACTORIES, Unchanging

_SLUG = "constant-recomputed"
_REMEMBERED = ("lru_cache", "cache", "cached_property", "property", "compile", "script")

_UNHASHABLE = frozenset({"List", "list", "Dict", "dict", "Set", "set", "Tensor", "Sequence", "Iterable", "ndarray"})


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    for statement in view.here.statements:
        function = file.function(statement)
        if not isinstance(function, FUNCTIONS) or _is_remembered(function) or function.name == "__init__":
            continue
        if _resizes_parameter(view, statement):
            message = "resize it once, when the size is known, and keep the result beside the parameter"
            return Confirmation(file.location(statement, case.location), (), (), message)
        if not _makes(file, statement) or _value(statement) is None:
            continue
        question = Unchanging(view.resolver, file, function)
        if not all(question.holds(call) for call in _made(file, statement)):
            continue
        fix = _buffered(view, statement, function) or _cached(view, function)
        place = file.location(statement, case.location)
        message = "" if fix else "register it as a buffer, or keep it by size, outside of the forward"
        return Confirmation(place, (fix,) if fix else (), (), message)
    return None


def _is_remembered(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = (one.func if isinstance(one, ast.Call) else one for one in function.decorator_list)
    return any(last_name(name) in _REMEMBERED for name in names)


def _value(statement: ast.stmt) -> ast.expr | None:
    value = getattr(statement, "value", None)
    return (
        value
        if isinstance(value, ast.expr) and isinstance(statement, ast.Assign | ast.Return | ast.AnnAssign)
        else None
    )


def _made(file: Outline, statement: ast.stmt) -> list[ast.Call]:
    return [call for call in find(statement, ast.Call) if file.dotted(call.func) in FACTORIES]


def _makes(file: Outline, statement: ast.stmt) -> bool:
    return bool(_made(file, statement))


def _resizes_parameter(view: Scene, statement: ast.stmt) -> bool:
    """`F.interpolate(self.position, ...)`, the table perhaps reshaped first."""
    for call in find(statement, ast.Call):
        if last_name(call.func) != "interpolate" or not call.args:
            continue
        source: ast.expr = call.args[0]
        while isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
            source = source.func.value
        if isinstance(source, ast.Attribute) and last_name(source.value) == "self":
            return True
        if isinstance(source, ast.Name):
            values = [one.value for one in view.here.outline.lookup(source) if one.value is not None]
            if values and all(_is_own(value) for value in values):
                return True
    return False


def _is_own(value: ast.expr) -> bool:
    """Whether a value is an attribute of `self`, reshaped or indexed perhaps."""
    while True:
        match value:
            case ast.Attribute(value=ast.Name(id="self")):
                return True
            case ast.Call(func=ast.Attribute(value=held)) | ast.Subscript(value=held) | ast.Attribute(value=held):
                value = held
            case _:
                return False


# A function of sizes


def _cached(view: Scene, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Fix | None:
    """`functools.lru_cache` on a plain function that is given nothing but settings and gives something made of them."""
    file = view.here.outline
    arguments = function.args
    if file.enclosing_class(function) is not None or not isinstance(file.parents[function], ast.Module):
        return None
    if isinstance(function, ast.AsyncFunctionDef) or arguments.vararg or arguments.kwarg:
        return None
    if not all(
        _is_hashable(one.annotation) for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    ):
        return None
    question = Unchanging(view.resolver, file, function)
    returned = [node.value for node in walk_scope(function) if isinstance(node, ast.Return) and node.value is not None]
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    uses = [name for name in find(function, ast.Name) if isinstance(name.ctx, ast.Load)]
    settings = all(question.holds(use) for use in uses if use.id in {one.arg for one in parameters})
    if not returned or not settings or not all(question.holds(value) for value in returned):
        return None
    if any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Global) for node in walk_scope(function)):
        return None
    patch = Patch(file)
    start = file.line_starts[function.lineno - 1]
    patch.insert(start, f"@{name_for(patch, 'functools.lru_cache')}(maxsize=16){file.newline}")
    return Fix(f"{_SLUG}/cache", f"Remember what {function.name} gives (lru_cache)", Safety.UNSAFE, patch.edits())


def _is_hashable(annotation: ast.expr | None) -> bool:
    """Whether an annotation leaves out lists, dicts, sets and tensors, which `lru_cache` cannot look up."""
    names = {last_name(node) for node in find(annotation, ast.expr)} if annotation is not None else set()
    return names.isdisjoint(_UNHASHABLE)


# A buffer


def _buffered(view: Scene, statement: ast.stmt, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Fix | None:
    """Move statements that need nothing but the module's settings into `__init__`, and register what they give."""
    file = view.here.outline
    owner = file.enclosing_class(function)
    if owner is None or file.parents[function] is not owner:
        return None
    bases = view.resolver.base_names(Definition(file, owner))
    init = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    if init is None or not any(base.endswith("Module") for base in bases):
        return None
    run = _run(view, statement, function)
    kept = _read_behind(file, run, function) if run else []
    last = run[-1] if run else None
    if len(kept) != 1 or not isinstance(last, ast.Assign) or last_name(last.targets[0]) != kept[0]:
        return None
    name = kept[0]
    taken = {node.attr for node in find(owner, ast.Attribute)} | {node.id for node in find(init, ast.Name)}
    if name in taken or any(one.arg == name for one in init.args.args):
        return None
    patch = Patch(file)
    end = init.body[-1]
    for one in run:
        patch.insert_line_after(end, _without_device(file, one))
    patch.insert_line_after(end, f'self.register_buffer("{name}", {name}, persistent=False)')
    patch.delete(run[:-1])
    patch.replace(last.value, f"self.{name}")
    return Fix(f"{_SLUG}/buffer", f"Keep {name} as a buffer", Safety.UNSAFE, patch.edits())


def _run(view: Scene, statement: ast.stmt, function: ast.AST) -> list[ast.stmt]:
    """The statement and its neighbours that are plain assignments of constants made of the module's settings alone."""
    file = view.here.outline
    block = file.block(statement)
    at = block.index(statement)

    def is_movable(one: ast.stmt) -> bool:
        if not (isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)):
            return False
        question = Unchanging(view.resolver, file, function)
        return question.holds(one.value) and not question.reads_inputs

    if not is_movable(statement):
        return []
    first, end = at, at + 1
    while first and is_movable(block[first - 1]):
        first -= 1
    while end < len(block) and is_movable(block[end]):
        end += 1
    return block[first:end]


def _read_behind(file: Outline, run: list[ast.stmt], function: ast.AST) -> list[str]:
    """The names bound in a run that anything outside of it reads."""
    bound = {last_name(one.targets[0]) for one in run if isinstance(one, ast.Assign)}
    inside = {id(node) for one in run for node in ast.walk(one)}
    reads = (node for node in find(function, ast.Name) if isinstance(node.ctx, ast.Load) and id(node) not in inside)
    return sorted({node.id for node in reads} & bound)


def _without_device(file: Outline, statement: ast.stmt) -> str:
    """The statement's text without the `device=` of the calls in it: in `__init__` there is no input to ask."""
    text = file.segment(statement)
    start = file.span(statement)[0]
    calls = [call for call in find(statement, ast.Call) if any(keyword.arg == "device" for keyword in call.keywords)]
    for call in sorted(calls, key=lambda one: -file.span(one)[0]):
        first, end = (offset - start for offset in file.span(call))
        text = text[:first] + edit_call(text[first:end], drop=("device",)) + text[end:]
    return text


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("arange(", "linspace(", "interpolate(", "eye(")), required=True)
