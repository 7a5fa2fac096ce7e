"""An in-place activation whose input autograd has to keep: the same activation out of place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .calls import edit_call
from .edits import Patch
from .fresh import feeds_next, is_unread
from .outline import Outline, find, last_name, outline
from .resolve import Value
from .scene import Scene, scene, searcher

_SLUG = "inplace-activation-clones"
_MODULES = {"SiLU": 0, "Hardswish": 0, "Mish": 0, "ReLU6": 0, "Hardsigmoid": 0, "Hardtanh": 2, "Threshold": 2}
"""Modules whose backward needs their input, and the position of `inplace` among their arguments."""
_FUNCTIONS = {"silu": 1, "hardswish": 1, "mish": 1, "relu6": 1, "hardsigmoid": 1, "hardtanh": 3, "threshold": 3}
_KIND_OF_OPERATOR = {
    "aten::silu_": ("SiLU", "silu"),
    "aten::hardswish_": ("Hardswish", "hardswish"),
    "aten::mish_": ("Mish", "mish"),
    "aten::hardsigmoid_": ("Hardsigmoid", "hardsigmoid"),
    "aten::hardtanh_": ("ReLU6", "Hardtanh", "relu6", "hardtanh"),
    "aten::relu6_": ("ReLU6", "relu6"),
    "aten::threshold_": ("Threshold", "threshold"),
}
_TITLE = "Run the activation out of place"


@dataclass(frozen=True, slots=True)
class _InPlace:
    """A call that asks for an in-place activation: of the function, or of the module's class."""

    outline: Outline
    call: ast.Call
    argument: ast.keyword | int
    """The keyword, or the position of the argument."""

    @property
    def is_spelt(self) -> bool:
        """Whether the call itself says True, and leaves it to no setting."""
        if isinstance(self.argument, ast.keyword):
            return _is_true(self.argument.value)
        return _is_true(self.call.args[self.argument])


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    kinds = _kinds(case)
    file = view.here.outline
    for call in view.here.calls():
        if (found := _asked(view, Value(file, call), kinds, _FUNCTIONS)) is not None:
            return _functional(view, found)
    modules = _modules_run(view, kinds)
    if modules:
        return _modules(view, modules)
    return _switched(view, kinds)


def _kinds(case: Case) -> frozenset[str]:
    """Names of modules and functions that the operators in the trace come from; all of them where it names none."""
    named = next((str(one.value) for one in case.finding.evidence if one.id == "operator"), "")
    kinds = [kind for name in named.split(", ") for kind in _KIND_OF_OPERATOR.get(name, ())]
    return frozenset(kinds or [*_MODULES, *_FUNCTIONS])


def _asked(view: Scene, value: Value, kinds: frozenset[str], positions: dict[str, int]) -> _InPlace | None:
    """The in-place argument of a call of one of the kinds, made now or by `partial` later, if it is or may be True."""
    file, call = value.outline, value.node
    assert isinstance(call, ast.Call)
    is_partial = last_name(call.func) == "partial" and bool(call.args)
    func = call.args[0] if is_partial else call.func
    name = last_name(func)
    if name not in kinds or name not in positions or not file.dotted(func).startswith("torch."):
        return None
    return _in_place(view, file, call, positions[name] + is_partial)


def _in_place(view: Scene, file: Outline, call: ast.Call, position: int) -> _InPlace | None:
    for keyword in call.keywords:
        if keyword.arg == "inplace":
            return _InPlace(file, call, keyword) if _may_be_true(view, Value(file, keyword.value)) else None
    plain = len(call.args) > position and not any(isinstance(arg, ast.Starred) for arg in call.args)
    return _InPlace(file, call, position) if plain and _may_be_true(view, Value(file, call.args[position])) else None


def _may_be_true(view: Scene, value: Value) -> bool:
    """Whether an argument is True, or a setting that somewhere is."""
    return _is_true(value.node) or bool(view.resolver.find(value, lambda one: _is_true(one.node)))


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _out_of_place(patch: Patch, found: _InPlace) -> None:
    """Take the argument out; a positional one that others follow becomes False."""
    call, argument = found.call, found.argument
    column = patch.outline.position(patch.outline.span(call)[0])[1] - 1
    segment = patch.outline.segment(call)
    if isinstance(argument, ast.keyword):
        text = edit_call(segment, drop=("inplace",), column=column)
    elif argument == len(call.args) - 1:
        text = edit_call(segment, drop_positions=(argument,), column=column)
    else:
        patch.replace(call.args[argument], "False")
        return
    patch.replace(call, text)


# The function


def _functional(view: Scene, found: _InPlace) -> Confirmation:
    file, statement = found.outline, found.outline.statement(found.call)
    place = file.location(statement, view.case.location)
    patch = Patch(file)
    _out_of_place(patch, found)
    given = found.call.args[0] if found.call.args else None
    if isinstance(statement, ast.Expr) and statement.value is found.call:
        # Called for its effect: only a name can be given the result instead.
        if not isinstance(given, ast.Name):
            return Confirmation(place)
        patch.insert(file.span(statement)[0], f"{given.id} = ")
        return Confirmation(place, (Fix(_SLUG, _TITLE, Safety.UNSAFE, patch.edits()),))
    is_safe = found.is_spelt and given is not None and is_unread(view.resolver, Value(file, given), statement)
    return Confirmation(place, (Fix(_SLUG, _TITLE, _safety(is_safe), patch.edits()),))


# The module


def _modules_run(view: Scene, kinds: frozenset[str]) -> list[_InPlace]:
    """The constructions of in-place modules that the calls at the place may run.

    Where the calls lead to none (a list that was appended to), those of the class that holds the place.
    """

    def module(value: Value) -> _InPlace | None:
        if not isinstance(value.node, ast.Call):
            return None
        return _module(view, value, kinds)

    found: dict[ast.Call, _InPlace] = {}
    for frame in view.frames:
        for call in frame.calls():
            for value in view.resolver.find(Value(frame.outline, call.func), lambda one: module(one) is not None):
                if (one := module(value)) is not None:
                    found.setdefault(one.call, one)
        owner = frame.outline.enclosing_class(frame.statements[0]) if frame.statements else None
        if not found and owner is not None:
            calls = (module(Value(frame.outline, call)) for call in find(owner, ast.Call))
            found.update({one.call: one for one in calls if one is not None})
        if found:
            break
    return sorted(found.values(), key=lambda one: (one.outline.path, one.call.lineno, one.call.col_offset))


def _module(view: Scene, value: Value, kinds: frozenset[str]) -> _InPlace | None:
    """A construction of an in-place module of one of the kinds: by its name, or by a class in a variable."""
    assert isinstance(value.node, ast.Call)
    if (plain := _asked(view, value, kinds, _MODULES)) is not None:
        return plain
    if not any(keyword.arg == "inplace" for keyword in value.node.keywords):
        return None
    if value.outline.dotted(value.node.func).startswith("torch."):
        return None

    def is_kind(one: Value) -> bool:
        return one.outline.dotted(one.node).startswith("torch.nn.") and last_name(one.node) in kinds

    classes = view.resolver.find(Value(value.outline, value.node.func), is_kind)
    return _in_place(view, value.outline, value.node, 0) if classes else None


def _modules(view: Scene, modules: list[_InPlace]) -> Confirmation:
    patches: dict[str, Patch] = {}
    for one in modules:
        _out_of_place(patches.setdefault(one.outline.path, Patch(one.outline)), one)
    first = modules[0]
    place = first.outline.location(first.call, view.case.location)
    is_safe = all(one.is_spelt and _takes_fresh(view, Value(one.outline, one.call)) for one in modules)
    edits = tuple(edit for patch in patches.values() for edit in patch.edits())
    fix = Fix(_SLUG, _TITLE, _safety(is_safe), edits)
    if place.line == view.case.location.line and place.path == view.case.location.path:
        return Confirmation(place, (fix,))
    return Confirmation(place, (fix,), (Related("runs here", view.case.location),))


def _takes_fresh(view: Scene, module: Value) -> bool:
    """Whether nothing but the module itself reads what it overwrites, wherever it is run."""
    file = module.outline
    if feeds_next(module):
        return True
    statement = file.statement(module.node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is module.node else None
    owner = file.enclosing_class(module.node)
    if not isinstance(target, ast.Attribute) or owner is None:
        return False
    uses = [node for node in find(owner, ast.Attribute) if node.attr == target.attr and node is not target]
    calls = [file.parents[node] for node in uses]
    return bool(calls) and all(
        isinstance(call, ast.Call)
        and call.func is use
        and len(call.args) == 1
        and is_unread(view.resolver, Value(file, call.args[0]), file.statement(call))
        for use, call in zip(uses, calls, strict=True)
    )


# The switch


def _switched(view: Scene, kinds: frozenset[str]) -> Confirmation | None:
    """`m.inplace = True` for every module of some classes, anywhere in the workspace."""
    workspace = view.case.workspace
    for path in workspace.paths():
        text = workspace.text(path)
        if text is None or ".inplace" not in text:
            continue
        if (file := outline(workspace.file(path))) is None:
            continue
        for statement in filter(_sets_inplace, file.statements):
            if (guard := _guarded(file, statement, kinds)) is not None:
                return _switch(view, file, statement, guard)
    return None


def _sets_inplace(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and _is_true(statement.value)
        and any(isinstance(target, ast.Attribute) and target.attr == "inplace" for target in statement.targets)
    )


@dataclass(frozen=True, slots=True)
class _Guard:
    """The classes that an `if` asks for: one, or a tuple, list or set of them."""

    classes: ast.expr
    cloning: tuple[ast.expr, ...]
    others: tuple[ast.expr, ...]


def _guarded(file: Outline, statement: ast.stmt, kinds: frozenset[str]) -> _Guard | None:
    for above in file.ancestors(statement):
        if isinstance(above, ast.If) and any(statement is one for one in ast.walk(ast.Module(above.body, []))):
            for classes in _classes_asked(above.test):
                parts = classes.elts if isinstance(classes, ast.Tuple | ast.List | ast.Set) else [classes]
                cloning = tuple(part for part in parts if last_name(part) in _MODULES)
                if any(last_name(part) in kinds for part in cloning):
                    return _Guard(classes, cloning, tuple(part for part in parts if part not in cloning))
    return None


def _classes_asked(test: ast.expr) -> Iterator[ast.expr]:
    """The classes of `isinstance(m, ...)`, `type(m) in ...`, `t is ...`."""
    for node in ast.walk(test):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]):
                yield classes
            case ast.Compare(ops=[ast.In() | ast.Is() | ast.Eq()], comparators=[classes]):
                yield classes
            case _:
                pass


def _switch(view: Scene, file: Outline, statement: ast.stmt, guard: _Guard) -> Confirmation:
    assert isinstance(statement, ast.Assign)
    place = file.location(statement, view.case.location)
    patch = Patch(file)
    if guard.others:
        patch.replace(guard.classes, _kept_classes(file, guard))
    else:
        patch.replace(statement.value, "False")
    # The modules say themselves what they are without the switch; what they run on is not known here.
    fix = Fix(_SLUG, "Leave these activations out of place", Safety.UNSAFE, patch.edits())
    return Confirmation(place, (fix,), (Related("runs here", view.case.location),))


def _kept_classes(file: Outline, guard: _Guard) -> str:
    kept = [file.segment(part) for part in guard.others]
    match guard.classes:
        case ast.Set():
            return f"{{{', '.join(kept)}}}"
        case ast.List():
            return f"[{', '.join(kept)}]"
        case _:
            is_asked_by_type = isinstance(file.parents[guard.classes], ast.Compare)
            return (
                f"({', '.join(kept)}{',' if len(kept) == 1 else ''})" if len(kept) > 1 or is_asked_by_type else kept[0]
            )


def _safety(is_safe: bool) -> Safety:
    return Safety.SAFE if is_safe else Safety.UNSAFE


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("inplace",)))
