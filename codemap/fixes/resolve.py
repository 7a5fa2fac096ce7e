"""Where a value comes from: names, attributes, helper functions, parameters and imports followed across a workspace.

An over-approximation: every assignment that could have given the value is followed. A caller filters what it finds.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from ...analyzer.findings import Location
from ..workspace import Workspace
from .bindings import FUNCTIONS, Binding, walk_scope
from .outline import COMPREHENSIONS, Outline, Scope, last_name, outline

_CONTAINERS = frozenset(("Sequential", "ModuleList"))
_MAX_VISITED = 400
_MAX_DEPTH = 20
_MAX_EFFORT = 3000
"""Expressions that one question may lead to, those that its answers ask in turn included."""
_MAX_FILES_SEARCHED = 100
"""A name that is called in more files tells nothing of who calls this one."""
_CALLS: WeakKeyDictionary[Workspace, dict[str, list[Value]]] = WeakKeyDictionary()
"""Calls by last name, for each workspace as long as it is open: every case of it asks for the same few."""


@dataclass(frozen=True, slots=True)
class Value:
    """An expression in one file."""

    outline: Outline
    node: ast.expr


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class in one file."""

    outline: Outline
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


Wanted = Callable[[Value], bool]


@dataclass(slots=True)
class _Effort:
    """How deep questions are nested, and how much more the outermost one may look at."""

    depth: int = 0
    left: int = 0

    @contextmanager
    def of_question(self) -> Iterator[Callable[[], bool]]:
        """Give what says, each time before an expression is looked at, whether it may be."""
        if self.depth == 0:
            self.left = _MAX_EFFORT
        self.depth += 1
        try:
            yield self._may_go_on
        finally:
            self.depth -= 1

    def _may_go_on(self) -> bool:
        self.left -= 1
        return self.left >= 0 and self.depth <= _MAX_DEPTH


@dataclass(frozen=True, slots=True)
class Resolver:
    """Follows values through a workspace. `callers` are call statements known to be on the stack: where one of them
    calls the function whose parameter is asked for, it alone is followed."""

    workspace: Workspace
    callers: Sequence[Location] = ()
    _definitions: dict[ast.AST, Definition | None] = field(default_factory=dict, compare=False, repr=False)
    _open: list[ast.AST] = field(default_factory=list, compare=False, repr=False)
    """Expressions whose definition is being looked up: `x = x.f()` asks for `x` while `x` is looked up."""
    _effort: _Effort = field(default_factory=lambda: _Effort(), compare=False, repr=False)

    def find(self, value: Value, wanted: Wanted, follows: Wanted = lambda _: True) -> list[Value]:
        """The wanted expressions that `value` may come from, nearest first. What lies behind one is not followed, nor
        what lies behind an expression that `follows` denies."""
        found: list[Value] = []
        queue = deque([value])
        seen: set[ast.AST] = set()
        with self._effort.of_question() as may_go_on:
            while queue and len(seen) < _MAX_VISITED and may_go_on():
                current = queue.popleft()
                if current.node in seen:
                    continue
                seen.add(current.node)
                if wanted(current):
                    found.append(current)
                elif follows(current):
                    queue.extend(self._sources(current))
        return found

    def definition(self, value: Value) -> Definition | None:
        """The workspace's own function, method or class that an expression names; None for a library's."""
        if value.node not in self._definitions:
            if value.node in self._open or len(self._open) > _MAX_DEPTH:
                return None
            self._open.append(value.node)
            found = self._definition(value)
            self._open.pop()
            self._definitions[value.node] = found
        return self._definitions[value.node]

    def _definition(self, value: Value) -> Definition | None:
        node, file = value.node, value.outline
        if isinstance(node, ast.Name):
            return self._named(file, node)
        if not isinstance(node, ast.Attribute):
            return None
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            owner = file.enclosing_class(node)
            return self.method(Definition(file, owner), node.attr) if owner else None
        if (other := self._imported(file, node.value)) is not None:
            return _top_level(other, node.attr)
        owners = (self.instance_class(one) for one in self.find(Value(file, node.value), self._is_instance))
        return next((method for owner in owners if owner and (method := self.method(owner, node.attr))), None)

    def instance_class(self, call: Value) -> Definition | None:
        """The workspace class that a call makes an instance of."""
        if not isinstance(call.node, ast.Call):
            return None
        made = self.definition(Value(call.outline, call.node.func))
        return made if made and isinstance(made.node, ast.ClassDef) else None

    def bases(self, owner: Definition) -> Iterator[Definition]:
        """The class and its base classes in the workspace."""
        queue, seen = deque([owner]), set[ast.AST]()
        while queue:
            current = queue.popleft()
            if current.node in seen or not isinstance(current.node, ast.ClassDef):
                continue
            seen.add(current.node)
            yield current
            for base in current.node.bases:
                if above := self.definition(Value(current.outline, base)):
                    queue.append(above)

    def base_names(self, owner: Definition) -> set[str]:
        """Dotted names of all the classes that a class derives from, as far as the workspace tells."""
        return {
            one.outline.dotted(base)
            for one in self.bases(owner)
            if isinstance(one.node, ast.ClassDef)
            for base in one.node.bases
        }

    def _is_instance(self, value: Value) -> bool:
        return self.instance_class(value) is not None

    def _sources(self, value: Value) -> Iterator[Value]:
        node, file = value.node, value.outline
        match node:
            case ast.Name():
                yield from self._of_name(file, node)
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                owner = file.enclosing_class(node)
                yield from self._of_attribute(Definition(file, owner), node.attr) if owner else ()
            case ast.Attribute():
                if (other := self._imported(file, node.value)) is not None:
                    yield from _module_values(other, node.attr)
                    return
                owners = self._owners(file, node)
                for owner in owners:
                    yield from self._of_attribute(owner, node.attr) if owner else ()
                if not owners:
                    yield Value(file, node.value)
            case ast.Call():
                yield from self._of_call(file, node)
            case ast.Subscript(value=held, slice=ast.Constant(value=key)):
                yield from self._of_item(Value(file, held), key)
            case ast.Subscript() | ast.Await() | ast.Starred() | ast.NamedExpr() | ast.YieldFrom():
                yield Value(file, node.value)
            case ast.IfExp():
                yield Value(file, node.body)
                yield Value(file, node.orelse)
            case ast.BoolOp():
                yield from (Value(file, part) for part in node.values)
            case ast.Tuple() | ast.List():
                yield from (Value(file, part) for part in node.elts)
            case ast.Dict():
                yield from (Value(file, part) for part in node.values)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                yield Value(file, node.elt)
            case ast.DictComp():
                yield Value(file, node.value)
            case _:
                return

    def _owners(self, file: Outline, node: ast.Attribute) -> list[Definition | None]:
        """The workspace classes whose attribute this is; none while the same is asked already: `x = x.inner`."""
        if node in self._open or len(self._open) > _MAX_DEPTH:
            return []
        self._open.append(node)
        found = [self.instance_class(one) for one in self.find(Value(file, node.value), self._is_instance)]
        self._open.pop()
        return found

    def _of_name(self, file: Outline, name: ast.Name) -> Iterator[Value]:
        for binding in _visible(file, name):
            if isinstance(binding.node, ast.arg):
                yield from self._of_parameter(file, binding.node)
            if isinstance(binding.node, ast.Import | ast.ImportFrom):
                home, _, symbol = file.aliases.get(name.id, "").rpartition(".")
                if (other := self._module(file, home)) is not None:
                    yield from _module_values(other, symbol)
            elif binding.value is not None:
                value = binding.value
                if binding.index is not None and not binding.is_element and isinstance(value, ast.Call):
                    made = self.definition(Value(file, value.func))
                    if made is not None and not isinstance(made.node, ast.ClassDef):
                        yield from _returned_item(made, binding.index)
                        continue
                yield Value(file, value)
        yield from _appended(file, name)

    def _of_attribute(self, owner: Definition, attribute: str) -> Iterator[Value]:
        for one in self.bases(owner):
            for node in one.outline.attribute_statements(one.node, attribute):
                match node:
                    case ast.Assign(value=value, targets=targets):
                        for target in targets:
                            yield from _attribute_value(one.outline, target, value, attribute)
                    case ast.AnnAssign(target=target, value=ast.expr() as value):
                        yield from _attribute_value(one.outline, target, value, attribute)
                    case ast.FunctionDef() if _is_property(node):
                        yield from _returns(Definition(one.outline, node))
                    case ast.Call(args=[value] | [_, value, *_]):
                        yield Value(one.outline, value)
                    case _:
                        pass

    def _of_call(self, file: Outline, call: ast.Call) -> Iterator[Value]:
        made = self.definition(Value(file, call.func))
        if made is not None and not isinstance(made.node, ast.ClassDef):
            yield from _returns(made)
            return
        if isinstance(call.func, ast.Attribute):
            yield Value(file, call.func.value)
        elif made is None and isinstance(call.func, ast.Name):
            yield Value(file, call.func)
        yield from (Value(file, arg) for arg in call.args)
        if made is not None:
            yield from (Value(file, keyword.value) for keyword in call.keywords)
            yield from self._passed_up(made)

    def _passed_up(self, made: Definition) -> Iterator[Value]:
        """What a class derived from a container of modules fills it with: `super().__init__(conv, norm)`."""
        if not _CONTAINERS.isdisjoint(name.rpartition(".")[2] for name in self.base_names(made)):
            for one in self.bases(made):
                for call in one.outline.calls("__init__"):
                    if one.outline.enclosing_class(call) is one.node:
                        yield from (Value(one.outline, arg) for arg in call.args)

    def _of_item(self, held: Value, key: object) -> Iterator[Value]:
        """The value under one key of dict displays and of `d[key] = ...`, or at one place of tuples; else all."""
        if held.node in self._open or len(self._open) > _MAX_DEPTH:  # `x = x[0]`
            return
        self._open.append(held.node)
        displays = self.find(held, lambda one: isinstance(one.node, ast.Dict | ast.Tuple | ast.List | ast.DictComp))
        self._open.pop()
        for one in displays:
            match one.node:
                case ast.Dict(keys=keys, values=values):
                    for name, value in zip(keys, values, strict=True):
                        if name is None or (isinstance(name, ast.Constant) and name.value == key):
                            yield Value(one.outline, value)
                case ast.Tuple(elts=parts) | ast.List(elts=parts) if isinstance(key, int) and -len(parts) <= key < len(
                    parts
                ):
                    yield Value(one.outline, parts[key])
                case _:
                    yield one
        text = ast.dump(held.node).replace("Store()", "Load()")
        for node in held.outline.statements:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if (
                        isinstance(target, ast.Subscript)
                        and isinstance(target.slice, ast.Constant)
                        and target.slice.value == key
                        and ast.dump(target.value) == text
                    ):
                        yield Value(held.outline, node.value)
        if not displays:
            yield held

    def _of_parameter(self, file: Outline, parameter: ast.arg) -> Iterator[Value]:
        function = file.parents[file.parents[parameter]]
        if not isinstance(function, FUNCTIONS):
            return
        owner = file.parents[function]
        is_method = isinstance(owner, ast.ClassDef)
        name = owner.name if isinstance(owner, ast.ClassDef) and function.name == "__init__" else function.name
        names = {name} if name != "forward" else {name, "__call__"}
        calls = [call for one in names for call in self.calls_of(one)]
        on_stack = [one for one in calls if any(_covers(place, one) for place in self.callers)]
        for call in on_stack or calls:
            yield from _argument(call, function.args, parameter, skips_self=is_method and not _is_static(function))

    def calls_of(self, name: str) -> list[Value]:
        """All calls, anywhere in the workspace, of something whose last name is `name`."""
        known = _CALLS.setdefault(self.workspace, {})
        if name not in known:
            known[name] = self._search_calls(name)
        return known[name]

    def _search_calls(self, name: str) -> list[Value]:
        found: list[Value] = []
        paths = self.workspace.calling(name)
        for path in paths if len(paths) <= _MAX_FILES_SEARCHED else ():
            if (file := outline(self.workspace.file(path))) is not None:
                found.extend(Value(file, call) for call in file.calls(name))
        return found

    def _named(self, file: Outline, name: ast.Name) -> Definition | None:
        for binding in file.lookup(name):
            if isinstance(binding.node, (*FUNCTIONS, ast.ClassDef)):
                return Definition(file, binding.node)
            if isinstance(binding.node, ast.ImportFrom):
                home, _, symbol = file.aliases.get(name.id, "").rpartition(".")
                if (other := self._module(file, home)) is not None:
                    return _top_level(other, symbol)
        return None

    def method(self, owner: Definition, name: str) -> Definition | None:
        """The method of a class, or of a base class of it in the workspace."""
        for one in self.bases(owner):
            for node in one.node.body:
                if isinstance(node, FUNCTIONS) and node.name == name:
                    return Definition(one.outline, node)
        return None

    def _imported(self, file: Outline, node: ast.expr) -> Outline | None:
        """The workspace file that an expression names as a module; a variable may be called like one (`model.py`)."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return None
        bound = file.lookup(root)
        is_import = any(isinstance(binding.node, ast.Import | ast.ImportFrom) for binding in bound)
        return self._module(file, file.dotted(node)) if is_import else None

    def _module(self, file: Outline, dotted: str) -> Outline | None:
        """The workspace file that a module name stands for, as this file would import it."""
        bare = dotted.lstrip(".")
        level = len(dotted) - len(bare)
        if not dotted:
            return None
        folder = file.path.split("/")[:-1]
        tail = bare.split(".") if bare else []
        if level:
            roots = [folder[: len(folder) - level + 1]]
        else:  # the script's own folder first, then every folder above it, then the usual `src`
            roots = [folder[:depth] for depth in range(len(folder), -1, -1)] + [["src"]]
        for root in roots:
            stem = "/".join([*root, *tail])
            for path in (f"{stem}.py", f"{stem}/__init__.py"):
                if (other := outline(self.workspace.file(path))) is not None:
                    return other
        return None


def _visible(file: Outline, name: ast.Name) -> list[Binding]:
    """A comprehension's own targets hide the scope's; else what the innermost scope binds."""
    for above in file.ancestors(name):
        if isinstance(above, COMPREHENSIONS):
            own = [
                binding
                for binding in file.bindings(file.function(name), name.id)
                if isinstance(binding.node, ast.comprehension) and binding.node in above.generators
            ]
            if own and not any(name in ast.walk(binding.value) for binding in own if binding.value):
                return own
        if isinstance(above, Scope):
            break
    return file.lookup(name)


def _appended(file: Outline, name: ast.Name) -> Iterator[Value]:
    """What the name's own function appends to the list that it stands for."""
    for call in file.calls("append"):
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=held)), args=[value]) if (
                held == name.id and file.function(call) is file.function(name)
            ):
                yield Value(file, value)
            case _:
                pass


def _covers(place: Location, value: Value) -> bool:
    return (
        place.path == value.outline.path
        and place.line <= (value.node.end_lineno or value.node.lineno)
        and value.node.lineno <= place.end_line
    )


def _argument(call: Value, args: ast.arguments, parameter: ast.arg, *, skips_self: bool) -> Iterator[Value]:
    assert isinstance(call.node, ast.Call)
    for keyword in call.node.keywords:
        if keyword.arg == parameter.arg:
            yield Value(call.outline, keyword.value)
    plain = (args.posonlyargs + args.args)[1 if skips_self else 0 :]
    if parameter in plain:
        position = plain.index(parameter)
        given = call.node.args[: position + 1]
        if len(given) > position and not any(isinstance(arg, ast.Starred) for arg in given):
            yield Value(call.outline, given[position])


def _returns(function: Definition) -> Iterator[Value]:
    for node in walk_scope(function.node):
        if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
            yield Value(function.outline, node.value)


def _returned_item(function: Definition, index: int) -> Iterator[Value]:
    for value in _returns(function):
        node = value.node
        is_tuple = isinstance(node, ast.Tuple) and index < len(node.elts)
        yield Value(value.outline, node.elts[index]) if isinstance(node, ast.Tuple) and is_tuple else value


def _module_values(file: Outline, name: str) -> Iterator[Value]:
    for binding in file.bindings(file.tree, name):
        if binding.value is not None:
            yield Value(file, binding.value)


def _top_level(file: Outline, name: str) -> Definition | None:
    for binding in file.bindings(file.tree, name):
        if isinstance(binding.node, (*FUNCTIONS, ast.ClassDef)):
            return Definition(file, binding.node)
    return None


def _attribute_value(file: Outline, target: ast.expr, value: ast.expr, attribute: str) -> Iterator[Value]:
    if isinstance(target, ast.Tuple):
        paired = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
        for position, part in enumerate(target.elts):
            held = value.elts[position] if paired and isinstance(value, ast.Tuple) else value
            yield from _attribute_value(file, part, held, attribute)
    elif isinstance(target, ast.Attribute):
        if target.attr == attribute and isinstance(target.value, ast.Name) and target.value.id in ("self", "cls"):
            yield Value(file, value)
    elif (
        isinstance(target, ast.Name)
        and target.id == attribute
        and isinstance(file.parents[file.statement(target)], ast.ClassDef)
    ):
        yield Value(file, value)


def _is_property(node: ast.FunctionDef) -> bool:
    return any(last_name(decorator) in ("property", "cached_property") for decorator in node.decorator_list)


def _is_static(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(last_name(decorator) == "staticmethod" for decorator in node.decorator_list)
