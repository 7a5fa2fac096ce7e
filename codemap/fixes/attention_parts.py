"""The parts of hand-written attention, and small questions about the code it is written in."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import Enum, auto

from .einsum import Equation
from .outline import Outline, last_name

SOFTMAX = ("Softmax",)


class Refusal(Exception):
    """The code is attention, but not one that the fused call can stand for; the message says why."""


class Needed(Refusal):
    """Something else reads the attention weights, which no fused kernel makes."""


class MaskKind(Enum):
    """How a mask takes part."""

    ADDED = auto()
    FILLED = auto()
    """Positions where it holds get minus infinity."""
    FILLED_FINITE = auto()
    """Positions where it holds get a large negative number: differs where a whole row is masked."""
    KEPT = auto()
    """Positions where it does not hold get minus infinity."""


@dataclass(frozen=True, slots=True)
class Mask:
    """One mask. `optional` is the name tested by `if <name> is not None:` around it, else ""."""

    kind: MaskKind
    node: ast.expr
    optional: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """A factor of the logits, or a divisor."""

    node: ast.expr
    is_divisor: bool


@dataclass(slots=True)
class Attention:
    """Hand-written attention, taken apart. Filled while it is read."""

    outline: Outline
    softmax: ast.Call
    statements: list[ast.stmt] = field(default_factory=list)
    """All statements that take part, in the order of the text; the last one holds `product`."""
    names: set[str] = field(default_factory=set)
    """Names of the intermediate results."""
    scales: list[Scale] = field(default_factory=list)
    masks: list[Mask] = field(default_factory=list)
    dropout: ast.Call | None = None
    q: ast.expr | None = None
    k: ast.expr | None = None
    """As it stands in the first product: transposed already, unless an equation says otherwise."""
    v: ast.expr | None = None
    logits_equation: Equation | None = None
    product: ast.expr | None = None
    """The second product: what the fused call replaces."""
    product_equation: Equation | None = None
    is_transposed: bool = False
    """The second product is `v @ weights.T`."""

    @property
    def is_three_dimensional(self) -> bool:
        """Whether the second product is known to take (batch, rows, columns): `bmm` and some equations say so."""
        if self.product_equation is not None:
            return len(self.product_equation.first) == 3
        return isinstance(self.product, ast.Call) and last_name(self.product.func) == "bmm"


def is_softmax(file: Outline, call: ast.Call) -> bool:
    """Whether a call is a softmax, by its name."""
    if last_name(call.func) in ("softmax", "softmax_"):
        return True
    return bool(file.calls("Softmax")) and find_module(file, call.func, SOFTMAX) is not None


def swaps_last(call: ast.expr) -> bool:
    """Whether a call swaps the last two dimensions: `.transpose(-2, -1)`, `.mT`, `.permute(0, 1, 3, 2)`."""
    if isinstance(call, ast.Attribute):
        return call.attr == "mT"
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    args = call.args
    if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List):
        args = args[0].elts
    numbers = [integer(arg) for arg in args]
    if call.func.attr in ("transpose", "swapaxes", "swapdims"):
        return sorted(number for number in numbers if number is not None) in ([-2, -1], [2, 3], [1, 2])
    return call.func.attr == "permute" and numbers in ([0, 1, 3, 2], [0, 2, 1])


def find_module(file: Outline, func: ast.expr, kinds: tuple[str, ...]) -> ast.Call | None:
    """The constructor `nn.<kind>(...)` that `self.<name>` holds, looked up in the class."""
    if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"):
        return None
    owner = file.enclosing_class(func)
    for kind in kinds:
        for made in file.calls(kind):
            statement = file.statement(made)
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            is_it = any(isinstance(target, ast.Attribute) and target.attr == func.attr for target in targets)
            if is_it and file.enclosing_class(statement) is owner:
                return made
    return None


def is_dropout(file: Outline, call: ast.Call) -> bool:
    """Whether a call is a dropout, by its name or by the module that it holds."""
    name = last_name(call.func)
    return "drop" in name.lower() or find_module(file, call.func, ("Dropout",)) is not None


def given(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """The argument of a call by name or position; None if it is not passed."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[position] if position < len(call.args) else None


def integer(node: ast.expr) -> int | None:
    """The number that an expression spells out, also with a minus sign; None for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = integer(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
