"""What type of numbers NumPy code makes, as far as the source tells: above all, where float64 comes in unasked.

NumPy's rules, of which float64 is the default: creators and generators make it, integers divided or combined with a
Python float become it, and an array of it makes everything combined with it float64 too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from .numpy_names import (
    CREATORS,
    FLOATING,
    FROM_FILE,
    INTEGERS,
    JOINING,
    KEEPING,
    MEANS,
    RANDOM,
    RANDOM_INTEGERS,
    WINDOWS,
)
from .outline import last_name
from .resolve import Resolver, Value

_MAX_DEPTH = 24
_MOST_KNOWN = 200
_MOST_FOLLOWED = 8


class Kind(Enum):
    """A type of numbers. `NUMBER` and `WHOLE` are Python's own, which take on an array's type where they can."""

    DOUBLE = "float64"
    SINGLE = "float32"
    INTEGER = "integer"
    NUMBER = "float"
    WHOLE = "int"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Numbers:
    """The type of an expression's numbers, and if they are float64, the expressions that made them so."""

    kind: Kind
    causes: tuple[Value, ...] = ()


_UNKNOWN = Numbers(Kind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class NumberTypes:
    """Asks for the types of expressions, following names with a resolver."""

    resolver: Resolver
    _open: list[ast.AST] = field(default_factory=list)
    _known: dict[ast.AST, Numbers] = field(default_factory=dict)

    def of(self, value: Value) -> Numbers:
        """The type of an expression's numbers; unknown too where it would take long to tell."""
        if value.node in self._known:
            return self._known[value.node]
        if value.node in self._open or len(self._open) > _MAX_DEPTH or len(self._known) > _MOST_KNOWN:
            return _UNKNOWN
        self._open.append(value.node)
        found = self._of(value)
        self._open.pop()
        self._known[value.node] = found
        return found

    def _of(self, value: Value) -> Numbers:
        file = value.outline
        match value.node:
            case ast.Constant(value=bool()):
                return Numbers(Kind.WHOLE)
            case ast.Constant(value=number):
                kind = Kind.NUMBER if isinstance(number, float) else Kind.WHOLE
                return Numbers(kind) if isinstance(number, int | float) else _UNKNOWN
            case ast.UnaryOp(operand=operand):
                return self.of(Value(file, operand))
            case ast.BinOp(left=left, right=right, op=op):
                return self._combined(value, self.of(Value(file, left)), self.of(Value(file, right)), op)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return _joined([self.of(Value(file, part)) for part in parts])
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part):
                return self.of(Value(file, part))
            case ast.IfExp(body=one, orelse=other):
                return _joined([self.of(Value(file, one)), self.of(Value(file, other))])
            case ast.Subscript(value=held):
                return _UNKNOWN if _is_key(value.node) else self.of(Value(file, held))
            case ast.Attribute(value=held, attr="T"):
                return self.of(Value(file, held))
            case ast.Attribute() if file.dotted(value.node) in ("numpy.pi", "math.pi", "numpy.e", "math.e", "math.tau"):
                return Numbers(Kind.NUMBER)
            case ast.Call():
                return self._of_call(value, value.node)
            case _:
                return self._behind(value)

    def _behind(self, value: Value) -> Numbers:
        """What a name, an attribute or a function of the workspace stands for."""
        node = value.node
        if isinstance(node, ast.Name) and (last := _last_binding(value, node)) is not None:
            return self.of(last)
        if not _is_followed(node):
            return _UNKNOWN
        found = self.resolver.find(value, lambda one: one.node is not node)  # one step; the next is asked of anew
        return _joined([self.of(one) for one in found]) if len(found) <= _MOST_FOLLOWED else _UNKNOWN

    def _of_call(self, value: Value, call: ast.Call) -> Numbers:
        name = value.outline.dotted(call.func)
        library, _, function = name.rpartition(".")
        if library in ("numpy", "numpy.random", "numpy.ma", "scipy.special", "math"):
            return self._of_function(value, call, library, function)
        if isinstance(call.func, ast.Name) and call.func.id in ("float", "int", "len"):
            return Numbers(Kind.NUMBER if call.func.id == "float" else Kind.WHOLE)
        if name in ("cv2.imread", "PIL.Image.open", "imageio.imread", "skimage.io.imread"):
            return Numbers(Kind.INTEGER)
        if isinstance(call.func, ast.Attribute) and self.resolver.definition(Value(value.outline, call.func)) is None:
            return self._of_method(value, call, Value(value.outline, call.func.value), call.func.attr)
        return self._behind(value)

    def _of_function(self, value: Value, call: ast.Call, library: str, function: str) -> Numbers:
        if library == "math":
            return Numbers(Kind.NUMBER)
        if (given := self._given_type(value, call)) is not None:
            return given
        made = Numbers(Kind.DOUBLE, (value,))
        operands = [self.of(Value(value.outline, arg)) for arg in call.args]
        if library == "numpy.random":
            return made if function in RANDOM else Numbers(Kind.INTEGER) if function in RANDOM_INTEGERS else _UNKNOWN
        if function in ("float32", "single", "float16", "half"):
            return Numbers(Kind.SINGLE)
        if function in CREATORS or function in WINDOWS or function in FROM_FILE or function in ("float64", "double"):
            return made
        if function in INTEGERS:
            return Numbers(Kind.INTEGER)
        if function == "full":
            return _as_array(value, operands[1:2])
        if function == "arange":
            return _as_array(value, operands)
        if function in FLOATING or function in MEANS:
            return _floating(value, _joined(operands[:1]))
        if function in JOINING:
            return _as_array(value, operands[1:] if function == "where" else operands)
        return _UNKNOWN

    def _of_method(self, value: Value, call: ast.Call, receiver: Value, method: str) -> Numbers:
        if method == "astype":
            return self._typed(value, call.args[0] if call.args else None) or _UNKNOWN
        if method in RANDOM and self._is_generator(receiver):
            return self._given_type(value, call) or Numbers(Kind.DOUBLE, (value,))
        if method in RANDOM_INTEGERS and self._is_generator(receiver):
            return Numbers(Kind.INTEGER)
        if method in KEEPING:
            return self._given_type(value, call) or self.of(receiver)
        if method in MEANS:
            return self._given_type(value, call) or _floating(value, self.of(receiver))
        return Numbers(Kind.INTEGER) if method in INTEGERS else _UNKNOWN

    def _is_generator(self, receiver: Value) -> bool:
        made = ("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator")
        if receiver.outline.dotted(receiver.node) == "numpy.random":
            return True
        return bool(
            self.resolver.find(receiver, lambda one: one.outline.dotted(getattr(one.node, "func", one.node)) in made)
        )

    def _given_type(self, value: Value, call: ast.Call) -> Numbers | None:
        """The type that a call's `dtype` asks for; None without one."""
        given = next((keyword.value for keyword in call.keywords if keyword.arg == "dtype"), None)
        if given is None and last_name(call.func) in ("zeros", "ones", "empty", "array", "asarray"):
            given = call.args[1] if len(call.args) > 1 else None
        return self._typed(value, given) if given is not None else None

    def _typed(self, value: Value, given: ast.expr | None) -> Numbers | None:
        if given is None:
            return None
        text = given.value if isinstance(given, ast.Constant) else value.outline.dotted(given).rpartition(".")[2]
        match text:
            case "float32" | "single" | "float16" | "half" | "f4" | "<f4" | "f":
                return Numbers(Kind.SINGLE)
            case "float64" | "double" | "float" | "float_" | "f8" | "<f8" | "d":
                return Numbers(Kind.DOUBLE, (value,))
            case str() if text.lstrip("u").startswith(("int", "bool", "long", "byte")):
                return Numbers(Kind.INTEGER)
            case _:
                return _UNKNOWN

    def _combined(self, value: Value, left: Numbers, right: Numbers, op: ast.operator) -> Numbers:
        kinds = {left.kind, right.kind}
        if Kind.DOUBLE in kinds:
            return Numbers(Kind.DOUBLE, (*left.causes, *right.causes))
        if Kind.UNKNOWN in kinds:
            return _UNKNOWN
        if Kind.SINGLE in kinds:
            return _UNKNOWN if Kind.INTEGER in kinds else Numbers(Kind.SINGLE)
        if Kind.INTEGER in kinds:
            is_floating = Kind.NUMBER in kinds or isinstance(op, ast.Div)
            return Numbers(Kind.DOUBLE, (value,)) if is_floating else Numbers(Kind.INTEGER)
        return Numbers(Kind.NUMBER if Kind.NUMBER in kinds or isinstance(op, ast.Div) else Kind.WHOLE)


def _joined(parts: Iterable[Numbers]) -> Numbers:
    """The type of an array made of several parts."""
    parts = list(parts)
    kinds = {part.kind for part in parts}
    for kind in (Kind.DOUBLE, Kind.UNKNOWN, Kind.SINGLE, Kind.INTEGER, Kind.NUMBER, Kind.WHOLE):
        if kind in kinds:
            return Numbers(kind, tuple(cause for part in parts for cause in part.causes))
    return _UNKNOWN


def _as_array(value: Value, operands: list[Numbers]) -> Numbers:
    """An array made of parts, of which Python's own numbers become NumPy's."""
    found = _joined(operands)
    if found.kind is Kind.NUMBER:
        return Numbers(Kind.DOUBLE, (value,))
    return Numbers(Kind.INTEGER) if found.kind is Kind.WHOLE else found


def _floating(value: Value, operand: Numbers) -> Numbers:
    """What a function gives that makes integers float64 and leaves floats as they are."""
    if operand.kind in (Kind.INTEGER, Kind.NUMBER, Kind.WHOLE):
        return Numbers(Kind.DOUBLE, (value,))
    return operand


def _is_key(node: ast.Subscript) -> bool:
    return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)


def _is_followed(node: ast.expr) -> bool:
    """Whether an expression leads on by a name of this file: a variable, an own attribute, a function's call."""
    match node:
        case ast.Name() | ast.Attribute(value=ast.Name(id="self")):
            return True
        case ast.Call(func=func):
            return isinstance(func, ast.Name) or (isinstance(func, ast.Attribute) and last_name(func.value) == "self")
        case _:
            return False


def _last_binding(value: Value, name: ast.Name) -> Value | None:
    """What a name was last bound to on the way to where it is read, if every way leads past that statement."""
    file = value.outline
    around = [node for node in (name, *file.ancestors(name)) if isinstance(node, ast.stmt)]
    for statement in around:
        block = file.block(statement)
        for earlier in reversed(block[: block.index(statement)] if statement in block else []):
            if isinstance(earlier, ast.AugAssign):
                continue  # in place: the array keeps its type
            bound = [one for one in file.lookup(name) if one.node is earlier]
            if bound and bound[-1].value is not None and bound[-1].index is None and not bound[-1].is_element:
                return Value(file, bound[-1].value) if isinstance(earlier, ast.Assign | ast.AnnAssign) else None
            if bound or any(getattr(one.node, "lineno", 0) in _lines(earlier) for one in file.lookup(name)):
                return None
    return None


def _lines(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
