"""Evaluates tensor expressions at sample values, to tell what they compute however they are written.

Only operations whose meaning is certain are known; anything else makes the expression unknown. Small constants that
keep a denominator from zero are replaced by a larger number, so that where they stand shows in the result.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...analyzer.trace.model import FloatArray
from .outline import last_name

Number = FloatArray | float

EPSILON = 0.37
"""What an epsilon is evaluated as."""
_LARGEST_EPSILON = 2e-3
_CASTS = ("float", "type_as", "to", "contiguous", "half", "bfloat16", "double")


def is_epsilon(node: ast.Constant) -> bool:
    """Whether a number is so small that it only keeps a denominator from zero."""
    return isinstance(node.value, float) and 0 < node.value <= _LARGEST_EPSILON


def is_known(name: str) -> bool:
    """Whether a function or method of this name may be evaluated."""
    return name.rstrip("_") in _KNOWN


def is_known_module(name: str) -> bool:
    """The same for a class of `torch.nn`."""
    return name in _MODULES


class UnknownError(Exception):
    """An expression holds something whose value or meaning is not known."""


def _erf(x: Number) -> Number:
    return np.vectorize(math.erf, otypes=[float])(x)


def _softplus(x: Number) -> Number:
    return np.logaddexp(0.0, x)


def _sigmoid(x: Number) -> Number:
    return 1.0 / (1.0 + np.exp(-np.asarray(x)))


_ELEMENTWISE: Mapping[str, Callable[[Number], Number]] = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "square": np.square,
    "reciprocal": lambda x: 1.0 / np.asarray(x),
    "neg": np.negative,
    "erf": _erf,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "relu": lambda x: np.maximum(x, 0.0),
    "relu6": lambda x: np.clip(x, 0.0, 6.0),
}
_OPERATIONS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
_BINARY: Mapping[str, Callable[[Number, Number], Number]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "multiply": np.multiply,
    "div": np.divide,
    "true_divide": np.divide,
    "pow": np.power,
}
_WITH_INPLACE = ("relu", "relu6")
"""May have a second argument, which changes nothing for a tensor made for them."""
_REDUCTIONS = ("mean", "sum", "var", "std", "max", "amax")
_OTHERS = ("clamp", "clip", "hardtanh", "unsqueeze", "view", "reshape", "tensor", "as_tensor")
_KNOWN = frozenset([*_ELEMENTWISE, *_BINARY, *_CASTS, *_REDUCTIONS, *_OTHERS])
_MODULES = {"Sigmoid": "sigmoid", "Tanh": "tanh", "Softplus": "softplus", "ReLU6": "relu6", "ReLU": "relu"}


@dataclass(slots=True)
class Evaluator:
    """Evaluates expressions of one function. `value_of` answers for names and attributes, or raises `UnknownError`;
    `module_of` names the class of the module that an expression calls ("" if it is not known)."""

    value_of: Callable[[ast.expr], Number]
    module_of: Callable[[ast.expr], str]
    dotted: Callable[[ast.AST], str]
    effects: list[ast.Call] = field(default_factory=list)
    """Calls met on the way that do more than give a value: conversions of type, and writes into an operand."""

    def of(self, node: ast.expr) -> Number:
        """The value of an expression. Raises `UnknownError`."""
        match node:
            case ast.Constant(value=bool()):
                raise UnknownError
            case ast.Constant(value=int() | float() as number):
                return EPSILON if is_epsilon(node) else float(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return np.negative(self.of(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                first, second = self.of(left), self.of(right)
                return self._checked(np.asarray(first), lambda: _OPERATIONS[type(op)](first, second))
            case ast.Subscript():
                return self._item(node)
            case ast.Call():
                return self._call(node)
            case ast.Attribute(attr="values", value=ast.Call() as call):
                return self._call(call)
            case ast.Attribute() if self.dotted(node) in ("math.pi", "numpy.pi", "torch.pi"):
                return math.pi
            case ast.Name() | ast.Attribute():
                return self.value_of(node)
            case _:
                raise UnknownError

    def _item(self, node: ast.Subscript) -> Number:
        """`w[:, None]`, and `x.max(-1, keepdim=True)[0]`."""
        held = node.value
        if isinstance(held, ast.Call) and last_name(held.func) == "max" and _constant(node.slice) == 0:
            return self._call(held)
        value = np.asarray(self.of(held))
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts: list[slice | None] = []
        for part in index:
            if isinstance(part, ast.Constant) and part.value is None:
                parts.append(None)
            elif isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None:
                parts.append(slice(None))
            else:
                raise UnknownError
        return self._checked(value, lambda: value[tuple(parts)])

    def _call(self, call: ast.Call) -> Number:
        dotted, name = self.dotted(call.func), last_name(call.func)
        is_function = dotted.startswith(("torch.", "math.", "numpy."))
        if not is_function and isinstance(call.func, ast.Attribute) and not self.module_of(call.func):
            if name.endswith("_") and isinstance(call.func.value, ast.Name | ast.Attribute):
                self.effects.append(call)
            return self._operation(name.rstrip("_"), call, self.of(call.func.value), call.args)
        if not is_function:
            name = _MODULES.get(self.module_of(call.func), "")
        if not name or not call.args:
            raise UnknownError
        return self._operation(name, call, self.of(call.args[0]), call.args[1:])

    def _operation(self, name: str, call: ast.Call, first: Number, rest: list[ast.expr]) -> Number:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if name in _CASTS:
            self.effects.append(call)
            return first
        if name in _ELEMENTWISE and len(rest) <= (name in _WITH_INPLACE) and set(given) <= {"inplace"}:
            return self._checked(np.asarray(first), lambda: _ELEMENTWISE[name](first))
        if name in _BINARY and len(rest) == 1 and not given:
            second = self.of(rest[0])
            return self._checked(np.asarray(first), lambda: _BINARY[name](first, second))
        if name in ("clamp", "clip", "hardtanh"):
            return self._clipped(first, rest, given)
        if name in _REDUCTIONS:
            return self._reduced(name, np.asarray(first), rest, given)
        if name == "unsqueeze" and len(rest) == 1 and isinstance(at := _constant(rest[0]), int):
            return self._checked(np.asarray(first), lambda: np.expand_dims(first, at))
        if name in ("view", "reshape") and rest:
            sizes = [size for one in rest if isinstance(size := _constant(one), int)]
            if len(sizes) == len(rest) and np.ndim(first) == 1:
                return self._checked(np.asarray(first), lambda: np.reshape(first, sizes))
        if name in ("tensor", "as_tensor") and not np.ndim(first):
            return first
        raise UnknownError

    def _clipped(self, first: Number, rest: list[ast.expr], given: Mapping[str | None, ast.expr]) -> Number:
        low = rest[0] if rest else given.get("min", given.get("min_val"))
        high = rest[1] if len(rest) > 1 else given.get("max", given.get("max_val"))
        if low is None or high is None or not set(given) <= {"min", "max", "min_val", "max_val", "inplace"}:
            raise UnknownError
        lowest, highest = self.of(low), self.of(high)
        return self._checked(np.asarray(first), lambda: np.clip(first, lowest, highest))

    def _reduced(
        self, name: str, first: FloatArray, rest: list[ast.expr], given: Mapping[str | None, ast.expr]
    ) -> Number:
        dims = _dims(rest[0] if rest else given.get("dim", given.get("axis")))
        keeps = rest[-1] if len(rest) > 1 else given.get("keepdim", given.get("keepdims"))
        if dims is None or _constant(keeps) is not True or len(rest) > 2:
            raise UnknownError
        known = {"dim", "axis", "keepdim", "keepdims", "unbiased", "correction"}
        if not set(given) <= known or (name in ("var", "std") and len(rest) > 1):
            raise UnknownError
        if name in ("var", "std"):
            unbiased = _constant(given["unbiased"]) if "unbiased" in given else True
            ddof = _constant(given["correction"]) if "correction" in given else int(unbiased is True)
            if unbiased not in (True, False) or ddof not in (0, 1):
                raise UnknownError
            reduce = np.var if name == "var" else np.std
            return self._checked(first, lambda: reduce(first, axis=dims, ddof=ddof, keepdims=True))
        reduce = {"mean": np.mean, "sum": np.sum, "max": np.max, "amax": np.max}[name]
        return self._checked(first, lambda: reduce(first, axis=dims, keepdims=True))

    @staticmethod
    def _checked(value: FloatArray, compute: Callable[[], Number]) -> Number:
        """What an operation gives; unknown where the sample's shape does not allow it."""
        try:
            return compute()
        except (ValueError, IndexError, TypeError) as error:
            raise UnknownError from error


def _constant(node: ast.expr | None) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
        case _:
            return None


def _dims(node: ast.expr | None) -> tuple[int, ...] | None:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    found = [_constant(part) for part in parts]
    numbers = tuple(one for one in found if isinstance(one, int) and not isinstance(one, bool))
    return numbers if len(numbers) == len(found) else None
