"""What each Python operator and implicit protocol call shows as in a trace: operator names, or dunder frames."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

_BINARY: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("add",),
    ast.Sub: ("sub", "rsub"),
    ast.Mult: ("mul",),
    ast.Div: ("div", "true_divide", "reciprocal"),
    ast.FloorDiv: ("floor_divide", "div"),
    ast.Mod: ("remainder", "fmod"),
    ast.Pow: ("pow",),
    ast.MatMult: ("matmul",),
    ast.BitAnd: ("bitwise_and", "__and__", "logical_and"),
    ast.BitOr: ("bitwise_or", "__or__", "logical_or"),
    ast.BitXor: ("bitwise_xor", "__xor__", "logical_xor"),
    ast.LShift: ("__lshift__", "bitwise_left_shift"),
    ast.RShift: ("__rshift__", "bitwise_right_shift"),
}
_BINARY_METHOD: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("add",),
    ast.Sub: ("sub",),
    ast.Mult: ("mul",),
    ast.Div: ("truediv", "div"),
    ast.FloorDiv: ("floordiv",),
    ast.Mod: ("mod",),
    ast.Pow: ("pow",),
    ast.MatMult: ("matmul",),
    ast.BitAnd: ("and",),
    ast.BitOr: ("or",),
    ast.BitXor: ("xor",),
    ast.LShift: ("lshift",),
    ast.RShift: ("rshift",),
}
_UNARY: dict[type[ast.unaryop], tuple[str, ...]] = {
    ast.USub: ("neg",),
    ast.UAdd: ("positive",),
    ast.Invert: ("bitwise_not", "logical_not"),
}
_UNARY_METHOD: dict[type[ast.unaryop], str] = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}

PROPERTIES: Mapping[str, tuple[str, ...]] = {
    "T": ("numpy_T", "permute", "t"),
    "mT": ("mT", "transpose"),
    "H": ("matrix_H", "transpose", "conj"),
    "mH": ("mH", "transpose", "conj"),
    "real": ("real", "view_as_real", "select"),
    "imag": ("imag", "view_as_real", "select"),
    "data": ("detach", "alias", "variable_data"),
}
"""Tensor attributes whose reading runs operators."""


def _keys(operators: Iterable[str] = (), frames: Iterable[str] = (), builtins: Iterable[str] = ()) -> dict[str, float]:
    keys = {f"o:{name}": 0.0 for name in operators}
    keys |= {f"f:{name}": 0.0 for name in frames}
    keys |= {f"b:{name}": 0.0 for name in builtins}
    return keys


def binary(operator: ast.operator, *, in_place: bool = False) -> dict[str, float]:
    """Event keys of `a <op> b` (or `a <op>= b`): the tensor operators and the dunder methods, reflected ones too."""
    names = _BINARY[type(operator)]
    operators = [*names, *(name + "_" for name in names)] if in_place else names
    prefixes = ("i", "", "r") if in_place else ("", "r")
    frames = [f"__{prefix}{name}__" for name in _BINARY_METHOD[type(operator)] for prefix in prefixes]
    # torch wraps some reflected operators in a function called `wrapped`.
    return {**_keys(operators, frames), "f:wrapped": 0.1}


def unary(operator: ast.unaryop) -> dict[str, float]:
    """Event keys of `-a`, `+a`, `~a`, `not a`."""
    if isinstance(operator, ast.Not):
        return TRUTH
    return _keys(_UNARY[type(operator)], (_UNARY_METHOD[type(operator)],))


def compare(operator: ast.cmpop) -> dict[str, float]:
    """Event keys of one comparison; membership shows as `__contains__`, identity as nothing."""
    if isinstance(operator, (ast.In, ast.NotIn)):
        return _keys(("eq", "any", "is_nonzero"), ("__contains__", "__iter__", "__next__", "__eq__"))
    name = _COMPARE.get(type(operator))
    return {} if name is None else {**_keys((name, name + "_"), (f"__{name}__",)), "f:wrapped": 0.1}


TRUTH: dict[str, float] = {**_keys(("is_nonzero",), ("__bool__", "__len__")), "o:item": 0.3}
"""`if t`, `t and u`, `not t`, `assert t`."""

GET_ITEM: dict[str, float] = _keys(
    (), ("__getitem__", "__missing__", "__index__", "__class_getitem__", "__hash__", "__eq__", "__len__")
)
"""The methods behind `x[i]` where `x` is no tensor."""
SET_ITEM: dict[str, float] = _keys((), ("__setitem__", "__getitem__", "__index__", "__hash__", "__eq__"))

INDEX_SLICE: dict[str, float] = _keys(("slice", "item"))
INDEX_NONE: dict[str, float] = _keys(("unsqueeze",))
INDEX_NUMBER: dict[str, float] = _keys(("select",))
INDEX_ANY: dict[str, float] = {
    **_keys(("select", "slice", "item", "unsqueeze", "empty", "to", "lift_fresh", "detach_", "_to_copy", "copy_")),
    "o:is_nonzero": 0.4,
}
"""An index that may be a number, a tensor, or a list that becomes one."""
INDEX_RESULT: dict[str, float] = _keys(("index", "alias", "to", "nonzero", "expand"))
"""What gathers in the end, once all basic indices are applied."""
INDEX_STORED: dict[str, float] = _keys(
    ("copy_", "fill_", "index_put_", "masked_fill_", "to", "lift_fresh", "empty", "detach_", "view", "expand", "zero_"),
)
"""What writes in the end."""

NUMBER: dict[str, float] = _keys(("item", "is_nonzero"), ("__int__", "__float__", "__bool__", "__index__", "__len__"))
"""`int(t)`, `float(t)`, `bool(t)`."""

ITERATE: dict[str, float] = _keys(("unbind",), ("__iter__", "__len__", "__getitem__"))
NEXT: dict[str, float] = _keys((), ("__next__", "__getitem__", "<genexpr>"))
FORMAT: dict[str, float] = _keys(("item",), ("__format__", "__str__", "__repr__"))
ENTER: dict[str, float] = _keys((), ("__enter__", "__aenter__"), ("__enter__",))
EXIT: dict[str, float] = _keys((), ("__exit__", "__aexit__"), ("__exit__",))
IMPORT: dict[str, float] = _keys((), ("_find_and_load", "_handle_fromlist", "__getattr__"), ("__import__",))
