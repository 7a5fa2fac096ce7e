"""What one file says at a glance: its imports, functions, classes and the modules that each class holds."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .nodes import parents_of
from .source import Function, SourceFile


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """A class: its methods, and the classes of the objects it keeps as `self.<name> = Class(...)`."""

    name: str
    node: ast.ClassDef
    bases: tuple[str, ...]
    """Dotted, as written."""
    methods: Mapping[str, Function]
    attributes: Mapping[str, str]
    """Attribute name -> bare name of the class (or function) whose call it was assigned from; "" if no call."""


@dataclass(frozen=True, slots=True)
class FileIndex:
    """Facts about one file, from one pass over its tree."""

    file: SourceFile
    nodes: tuple[ast.AST, ...]
    """Every node of the tree in the order of `ast.walk`, without contexts and operators."""
    imports: Mapping[str, str]
    """Local name -> dotted origin; a leading "." for a relative import."""
    functions: Mapping[str, tuple[Function, ...]]
    """By bare name, methods too."""
    classes: Mapping[str, ClassFacts]
    owner: Mapping[ast.AST, str]
    """Method node -> name of its class."""
    origins: Mapping[str, str]
    """Variable -> dotted origin of the call that it is assigned from, where that is the same all over the file."""

    def class_of(self, function: Function) -> ClassFacts | None:
        """The class that `function` is a method of, or a function nested in a method."""
        name = function.qualname
        while "." in name:
            name = name.rpartition(".")[0]
            if facts := self.classes.get(name.rpartition(".")[2]):
                return facts
        return None

    def dotted(self, node: ast.expr) -> str:
        """The dotted origin of a name or attribute chain, through the imports; "" for anything else.

        `F.conv2d` is "torch.nn.functional.conv2d" after `import torch.nn.functional as F`.
        """
        written = dotted_name(node)
        head, dot, tail = written.partition(".")
        return self.imports.get(head, head) + dot + tail if written else ""


def dotted_name(node: ast.expr) -> str:
    """A name or attribute chain as written; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def build_index(file: SourceFile) -> FileIndex:
    """Index a parsed file; one without a tree gives an empty index."""
    imports: dict[str, str] = {}
    functions: dict[str, list[Function]] = {}
    classes: dict[str, ClassFacts] = {}
    owner: dict[ast.AST, str] = {}
    by_node = {function.node: function for function in file.functions}
    for function in file.functions:
        functions.setdefault(function.name, []).append(function)
    nodes = () if file.tree is None else (file.tree, *parents_of(file.tree))
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.update(_imported(node))
        elif isinstance(node, ast.ClassDef):
            methods = {
                item.name: by_node[item]
                for item in node.body
                if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
            }
            owner.update({method.node: node.name for method in methods.values()})
            bases = tuple(dotted_name(base) for base in node.bases)
            classes[node.name] = ClassFacts(node.name, node, bases, methods, _attributes(node))
    index = FileIndex(
        file, nodes, imports, {name: tuple(group) for name, group in functions.items()}, classes, owner, {}
    )
    return replace(index, origins=_origins(index))


def _origins(index: FileIndex) -> dict[str, str]:
    """`opt = torch.optim.SGD(...)`, `with profile(...) as prof`: what kind of object a variable holds."""
    found: dict[str, str] = {}
    for node in index.nodes:
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            pairs = [(item.optional_vars, item.context_expr) for item in node.items if item.optional_vars is not None]
        for target, value in pairs:
            if isinstance(target, ast.Name) and not (isinstance(value, ast.Constant) and value.value is None):
                origin = index.dotted(value.func) if isinstance(value, ast.Call) else ""
                found[target.id] = origin if found.get(target.id, origin) == origin else ""
    return found


def _imported(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.partition(".")[0]
            for alias in node.names
        }
    origin = "." * node.level + (node.module or "")
    join = "" if origin.endswith(".") or not origin else "."
    return {alias.asname or alias.name: f"{origin}{join}{alias.name}" for alias in node.names}


def _attributes(node: ast.ClassDef) -> dict[str, str]:
    """`self.x = Class(...)` anywhere in the class, tuple assignments taken apart; the first assignment counts."""
    found: dict[str, str] = {}
    for child in ast.walk(node):
        if not isinstance(child, ast.Assign):
            continue
        for target in child.targets:
            pairs = [(target, child.value)]
            if isinstance(target, ast.Tuple) and isinstance(child.value, ast.Tuple):
                pairs = list(zip(target.elts, child.value.elts, strict=False))
            for name, value in pairs:
                if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id == "self":
                    called = dotted_name(value.func) if isinstance(value, ast.Call) else ""
                    found.setdefault(name.attr, called.rpartition(".")[2])
    return found
