"""Takes in an expression for evaluation: its operands, and the assignments above it that it takes values from."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ...analyzer.trace.model import FloatArray
from .numeric import EPSILON, Evaluator, Number, UnknownError, is_epsilon, is_known, is_known_module
from .outline import Outline, find, last_name
from .resolve import Resolver, Value
from .straight import NO_VERSION, Block

Leaf = tuple[str, int]
"""An operand's text, and which of the block's statements gave it its value (NO_VERSION: none)."""


_MOST_DEPTH = 12
_LIBRARIES = ("torch.", "math.", "numpy.")
_WITH_DIMS = ("mean", "sum", "var", "std", "max", "amax", "unsqueeze", "view", "reshape")
"""Their further arguments are no operands."""
_WORDS = ("erf", "tanh", "sigmoid", "exp", "mean", "clamp", "relu6", "hardtanh", "softplus", "clip")
"""One of these stands in every writing of a formula; what holds none need not be evaluated."""


class Reading:
    """What an expression is made of: its operands, and the assignments that it takes values from."""

    def __init__(self, resolver: Resolver, outline: Outline, block: Block) -> None:
        self.leaves: dict[Leaf, ast.expr] = {}
        self.assignments: list[ast.Assign] = []
        self.epsilon: ast.expr | None = None
        self.is_plausible = False
        self._resolver = resolver
        self._outline = outline
        self._block = block
        self._modules: dict[ast.expr, str] = {}

    def read(self, node: ast.expr, depth: int) -> None:
        """Take in an expression. Raises `UnknownError` where it calls something whose meaning is not known."""
        if depth > _MOST_DEPTH:
            raise UnknownError
        match node:
            case ast.Constant():
                if is_epsilon(node):
                    self.epsilon = node
            case ast.Name():
                self._read_name(node, depth)
            case ast.Attribute(attr="values", value=ast.Call() as call):
                self.read(call, depth + 1)
            case ast.Attribute():
                if last_name(node) != "pi":
                    self._add(node, NO_VERSION)
            case ast.Call():
                self._read_call(node, depth)
            case ast.BinOp() | ast.UnaryOp() | ast.Subscript():
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr) and not (isinstance(node, ast.Subscript) and child is node.slice):
                        self.read(child, depth + 1)
            case _:
                raise UnknownError

    def evaluator(self, values: Mapping[int, FloatArray]) -> Evaluator:
        """Evaluates with these values for the operands."""

        def value_of(node: ast.expr) -> Number:
            if isinstance(node, ast.Name) and (source := self._inlined(node)) is not None:
                return evaluator.of(source)
            leaf = self.leaves.get(self._leaf(node))
            if leaf is not None and leaf is self.epsilon:
                return EPSILON
            if leaf is None or id(leaf) not in values:
                raise UnknownError
            return values[id(leaf)]

        evaluator = Evaluator(value_of, self._module, self._outline.dotted)
        return evaluator

    def _read_name(self, name: ast.Name, depth: int) -> None:
        if name.id in ("self", "cls"):
            raise UnknownError
        source = self._inlined(name)
        if source is None:
            self._add(name, self._block.version(name))
            return
        assignment = self._block.source(name)
        if assignment is not None and assignment not in self.assignments:
            self.assignments.append(assignment)
        self.read(source, depth + 1)

    def _read_call(self, call: ast.Call, depth: int) -> None:
        if not self._is_known(call):
            raise UnknownError
        self.is_plausible |= last_name(call.func).rstrip("_") in _WORDS or bool(self._module(call.func))
        is_function = self._outline.dotted(call.func).startswith(_LIBRARIES) or bool(self._module(call.func))
        if isinstance(call.func, ast.Attribute) and not is_function:
            self.read(call.func.value, depth + 1)
        if last_name(call.func) not in _WITH_DIMS or is_function:
            for arg in call.args[: 1 if is_function and last_name(call.func) in _WITH_DIMS else None]:
                self.read(arg, depth + 1)

    def _is_known(self, call: ast.Call) -> bool:
        if self._module(call.func):
            return True
        dotted = self._outline.dotted(call.func)
        is_plain = dotted.startswith(_LIBRARIES) or isinstance(call.func, ast.Attribute)
        return is_plain and is_known(last_name(call.func))

    def _inlined(self, name: ast.Name) -> ast.expr | None:
        """The expression that a name stands for: assigned above in the block, or a number at the module's top."""
        if (assignment := self._block.source(name)) is not None:
            return assignment.value if self._is_readable(assignment.value) else None
        if self._block.version(name) != NO_VERSION:
            return None
        bound = self._outline.lookup(name)
        value = bound[0].value if len(bound) == 1 and isinstance(bound[0].node, ast.Assign) else None
        is_number = value is not None and self._is_readable(value) and not _names(self._outline, value)
        return value if is_number else None

    def _is_readable(self, node: ast.expr) -> bool:
        kinds = (ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Constant, ast.Call)
        return isinstance(node, kinds) and all(self._is_known(call) for call in find(node, ast.Call))

    def _module(self, func: ast.expr) -> str:
        """The class of `torch.nn` whose instance is called; "" if it is none of those that are known."""
        if func not in self._modules:
            self._modules[func] = self._module_of(func)
        return self._modules[func]

    def _module_of(self, func: ast.expr) -> str:
        if not (isinstance(func, ast.Attribute) and last_name(func.value) == "self"):
            return ""
        made = self._resolver.find(Value(self._outline, func), lambda one: isinstance(one.node, ast.Call))
        calls = [(one.outline, one.node.func) for one in made if isinstance(one.node, ast.Call)]
        names = {last_name(made_by) for file, made_by in calls if file.dotted(made_by).startswith("torch.nn.")}
        name = next(iter(names), "")
        return name if len(names) == 1 and len(made) == len(calls) and is_known_module(name) else ""

    def _leaf(self, node: ast.expr) -> Leaf:
        return ast.unparse(node), self._block.version(node) if isinstance(node, ast.Name) else NO_VERSION

    def _add(self, node: ast.expr, version: int) -> None:
        leaf = self.leaves.setdefault((ast.unparse(node), version), node)
        if "eps" in last_name(node).lower():
            self.epsilon = leaf


def _names(file: Outline, value: ast.expr) -> list[ast.Name]:
    """The names in an expression that are no modules."""
    return [one for one in find(value, ast.Name) if file.dotted(one) not in ("math", "numpy", "torch")]
