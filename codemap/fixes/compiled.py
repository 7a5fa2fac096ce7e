"""Finding what `torch.compile` is applied to: calls, decorators, `module.compile()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ..workspace import Workspace
from .bindings import FUNCTIONS
from .models import assigned_target
from .outline import Outline, last_name, outline
from .resolve import Resolver, Value
from .scene import Scene

_NAMES = ("torch.compile", "torch._dynamo.optimize")
_OPTIONS = (None, "fullgraph", "dynamic", "backend", "mode", "options", "disable")
"""Keyword arguments of `torch.compile`, None standing for `**options`; other libraries' `compile` have others."""

_COMPILED: WeakKeyDictionary[Workspace, set[str]] = WeakKeyDictionary()
"""What each workspace compiles, as long as it is open: asked for at every place of a search."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """One place where something is compiled."""

    outline: Outline
    node: ast.expr
    """`torch.compile(...)`, `net.compile(...)`, or a decorator, which may be the bare name."""

    @property
    def call(self) -> ast.Call | None:
        """The call with its arguments; None for a bare decorator."""
        return self.node if isinstance(self.node, ast.Call) else None

    def given(self, name: str) -> ast.expr | None:
        """A keyword argument."""
        keywords = self.call.keywords if self.call is not None else []
        return next((keyword.value for keyword in keywords if keyword.arg == name), None)

    @property
    def has_unknown_arguments(self) -> bool:
        """Whether more may be given than is written: `**options`."""
        return self.call is not None and any(keyword.arg is None for keyword in self.call.keywords)


def is_compilation(file: Outline, node: ast.expr) -> bool:
    """Whether an expression is `torch.compile(...)` or `net.compile(...)` (not `re.compile`)."""
    if not isinstance(node, ast.Call):
        return False
    dotted = file.dotted(node.func)
    if dotted in _NAMES:
        return True
    # `Module.compile` gives nothing: what is used is another library's.
    is_alone = isinstance(file.parents[node], ast.Expr)
    is_method = is_alone and isinstance(node.func, ast.Attribute) and node.func.attr == "compile" and not node.args
    has_others = any(keyword.arg not in _OPTIONS for keyword in node.keywords)
    return is_method and not has_others and dotted.partition(".")[0] not in ("re", "torch", "jit")


def compilations(scene: Scene) -> list[Compilation]:
    """All compilations of the workspace; those of what runs at the place come first."""
    found: dict[ast.expr, Compilation] = {}
    for frame in scene.frames:
        for call in frame.calls():
            values = scene.resolver.find(Value(frame.outline, call.func), _is_compilation_value)
            for value in values:
                found.setdefault(value.node, Compilation(value.outline, value.node))
            made = scene.resolver.definition(Value(frame.outline, call.func))
            if made is not None:
                for decorator in _decorators(made.outline, made.node):
                    found.setdefault(decorator, Compilation(made.outline, decorator))
    for one in in_workspace(scene):
        found.setdefault(one.node, one)
    return list(found.values())


def in_workspace(scene: Scene) -> Iterator[Compilation]:
    """Every compilation of the workspace, in the order of its files."""
    workspace = scene.case.workspace
    for path in workspace.holding("compile", "optimize"):
        facts = workspace.facts(path)
        if facts.holds("re") and not facts.mentions_torch:
            continue
        if (file := outline(workspace.file(path))) is None:
            continue
        for call in file.calls("compile") + file.calls("optimize"):
            if is_compilation(file, call):
                yield Compilation(file, call)
        for node in file.statements:
            if isinstance(node, FUNCTIONS):
                for decorator in _decorators(file, node):
                    if not isinstance(decorator, ast.Call):
                        yield Compilation(file, decorator)


def is_compiled(resolver: Resolver, file: Outline, function: ast.AST) -> bool:
    """Whether a function or its class is compiled by name: decorated, or given to `torch.compile`."""
    if not isinstance(function, FUNCTIONS):
        return False
    if any(True for _ in _decorators(file, function)):
        return True
    owner = file.enclosing_class(function)
    names = {function.name, *([owner.name] if owner is not None else [])}
    return not names.isdisjoint(_names_compiled(resolver.workspace))


def _names_compiled(workspace: Workspace) -> set[str]:
    """Last names of what the workspace compiles, and of what makes it: `Net` of `torch.compile(net)`."""
    if workspace not in _COMPILED:
        _COMPILED[workspace] = set(_search_compiled(Resolver(workspace)))
    return _COMPILED[workspace]


def _search_compiled(resolver: Resolver) -> Iterator[str]:
    for call in resolver.calls_of("compile"):
        if not isinstance(call.node, ast.Call) or not is_compilation(call.outline, call.node):
            continue
        given = call.node.args[0] if call.node.args else getattr(call.node.func, "value", None)
        if given is None:
            continue
        yield last_name(given)
        for made in resolver.find(Value(call.outline, given), lambda one: isinstance(one.node, ast.Call)):
            if isinstance(made.node, ast.Call):
                yield last_name(made.node.func)


def compiled_name(compilation: Compilation) -> ast.expr | None:
    """The name that the compiled callable is bound to: `net` of `net = torch.compile(model)`."""
    return assigned_target(compilation.outline, compilation.node)


def _is_compilation_value(value: Value) -> bool:
    return is_compilation(value.outline, value.node)


def _decorators(file: Outline, node: ast.AST) -> Iterator[ast.expr]:
    for decorator in getattr(node, "decorator_list", []):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        named = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
        is_partial = last_name(called) == "partial" and named is not None and file.dotted(named) in _NAMES
        if file.dotted(called) in _NAMES or is_partial:
            yield decorator
