"""What a loop over parameters asks of each tensor: its squared norm, or whether an element of it is not finite."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .outline import last_name
from .parameters import Walk, tensor_of

_BAD_MASKS = ("isnan", "isinf", "isposinf", "isneginf")
_NORMS = ("norm", "vector_norm")
_INFINITIES = ('float("inf")', "float('inf')", "math.inf", "torch.inf", "np.inf", "inf")
_READS = ("item", "tolist", "numpy", "cpu", "any", "all", "equal", "isfinite", "isnan", "isinf")
_MODULES = ("torch", "linalg", "LA", "math", "np")


@dataclass(frozen=True, slots=True)
class SquaredNorm:
    """`norm(tensor, order) ** order`."""

    tensor: str
    order: str


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads expressions about the tensors of a walk. `aliases` are names that the loop gave to expressions."""

    walk: Walk
    aliases: Mapping[str, ast.expr]

    def bad(self, node: ast.expr) -> str | None:
        """The tensor of which a condition, where it is true, says that some element is not finite."""
        match node := self._plain(node):
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.good(operand)
            case ast.BoolOp(op=ast.Or(), values=parts):
                return _agreed(self.bad(part) for part in parts)
            case ast.BoolOp(op=ast.And(), values=parts):
                return next((tensor for part in parts if (tensor := self.bad(part))), None)
            case ast.Compare(left=left, ops=[ast.Gt()], comparators=[ast.Constant(value=0)]):
                counted = _reduced(self._plain(left), ("sum", "count_nonzero"))
                return self._bad_mask(counted) if counted is not None else None
            case _:
                return self._bad_mask(_reduced(node, ("any",)) or node)

    def good(self, node: ast.expr) -> str | None:
        """The tensor of which a condition, where it is false, says that some element is not finite."""
        match node := self._plain(node):
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.bad(operand)
            case ast.BoolOp(op=ast.And(), values=parts):
                return _agreed(self.good(part) for part in parts)
            case _:
                return self._good_mask(_reduced(node, ("all",)) or node)

    def squared_norm(self, node: ast.expr) -> SquaredNorm | None:
        """`g.norm(2).item() ** 2`, `(g ** 2).sum().item()` and their like."""
        match node := self._plain(node):
            case ast.BinOp(left=left, op=ast.Pow(), right=exponent):
                found = self._norm(left)
                order = self.walk.file.segment(exponent)
                is_same = found is not None and (found.order == order or {found.order, order} <= {"2", "2.0"})
                return found if is_same else None
            case ast.Call():
                summed = _reduced(node, ("sum",))
                squared = None if summed is None else _square(self._plain(summed))
                tensor = None if squared is None else self.tensor(squared)
                return SquaredNorm(tensor, "2") if tensor else None
            case _:
                return None

    def peak(self, node: ast.expr) -> str | None:
        """The tensor whose largest absolute value this is: `g.abs().max().item()`, `g.norm(float("inf"))`."""
        norm = self._norm(node)
        if norm is not None:
            return norm.tensor if norm.order in _INFINITIES else None
        largest = _reduced(self._plain(node), ("max", "amax"))
        absolute = None if largest is None else _reduced(self._plain(largest), ("abs",))
        return None if absolute is None else self.tensor(absolute)

    def condition(self, test: ast.expr, *, negated: bool = False) -> str | None:
        """What must hold of a parameter that the loop goes on with; None where its names can't say it."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.condition(operand, negated=not negated)
            case ast.Compare(
                left=left, ops=[ast.Is() | ast.IsNot() as operator], comparators=[ast.Constant(value=None)]
            ):
                is_none = isinstance(operator, ast.Is) is not negated
                tensor = self.tensor(left)
                return tensor and f"{tensor} is {'' if is_none else 'not '}None"
            case ast.BoolOp(op=operator, values=parts) if isinstance(operator, ast.Or) is negated:
                said = [self.condition(part, negated=negated) for part in parts]
                return " and ".join(one for one in said if one) if all(said) else None
            case _ if any(isinstance(node, ast.Name) and node.id in self.aliases for node in ast.walk(test)):
                return None
            case ast.Name() | ast.Attribute() | ast.Call() | ast.Compare():
                text = self.walk.file.segment(test)
                return f"not {text}" if negated else text
            case _:
                text = self.walk.file.segment(test)
                return f"not ({text})" if negated else f"({text})"

    def tensor(self, node: ast.expr) -> str | None:
        """The parameter's tensor that an expression is, as the loop would write it."""
        return tensor_of(node, self.walk, self.aliases)

    def _norm(self, node: ast.expr) -> SquaredNorm | None:
        node = self._plain(node)
        if not isinstance(node, ast.Call) or last_name(node.func) not in _NORMS:
            return None
        operands = _operands(node)
        orders = [*operands[1:], *(keyword.value for keyword in node.keywords if keyword.arg in ("p", "ord"))]
        tensor = self.tensor(operands[0]) if operands else None
        if tensor is None or len(operands) + len(node.keywords) != 1 + len(orders) or len(orders) > 1:
            return None
        return SquaredNorm(tensor, self.walk.file.segment(orders[0]) if orders else "2")

    def _bad_mask(self, node: ast.expr) -> str | None:
        match node := self._plain(node):
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return _agreed((self._bad_mask(left), self._bad_mask(right)))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self._good_mask(operand)
            case ast.Call() if last_name(node.func) == "logical_not":
                return _agreed(self._good_mask(part) for part in _operands(node))
            case ast.Call() if last_name(node.func) == "logical_or":
                return _agreed(self._bad_mask(part) for part in _operands(node))
            case _:
                return self._asked(node, _BAD_MASKS)

    def _good_mask(self, node: ast.expr) -> str | None:
        node = self._plain(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self._bad_mask(node.operand)
        return self._asked(node, ("isfinite",))

    def _asked(self, node: ast.expr, names: tuple[str, ...]) -> str | None:
        """`torch.isnan(g)`, `g.isnan()`, and the same of a sum or norm, which is not finite where an element is not."""
        operands = _operands(node) if isinstance(node, ast.Call) and last_name(node.func) in names else []
        if len(operands) != 1:
            return None
        asked = self._plain(operands[0])
        return self.tensor(_reduced(asked, ("sum", "norm", "mean")) or asked)

    def _plain(self, node: ast.expr) -> ast.expr:
        """What a name of the loop stands for, and what `x.item()`, `float(x)`, `bool(x)` read."""
        if isinstance(node, ast.Name) and node.id in self.aliases:
            return self._plain(self.aliases[node.id])
        match node:
            case ast.Call(func=ast.Attribute(attr="item" | "cpu" | "detach", value=read), args=[], keywords=[]):
                return self._plain(read)
            case ast.Call(func=ast.Name(id="float" | "bool" | "int"), args=[read], keywords=[]):
                return self._plain(read)
            case _:
                return node


def reads_value(root: ast.AST) -> bool:
    """Whether something under a node may make Python ask for a tensor's value."""
    return any(isinstance(node, ast.Call) and last_name(node.func) in _READS for node in ast.walk(root))


def _agreed(tensors: Iterable[str | None]) -> str | None:
    """The tensor that all of the answers name."""
    found = set(tensors)
    return found.pop() if len(found) == 1 else None


def _square(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
            return left
        case ast.Call(func=func, keywords=[]) if last_name(func) in ("pow", "square"):
            operands = _operands(node)
            exponents = [part.value for part in operands[1:] if isinstance(part, ast.Constant)]
            is_square = exponents == [2] if last_name(func) == "pow" else len(operands) == 1
            return operands[0] if is_square else None
        case _:
            return None


def _reduced(node: ast.expr, names: tuple[str, ...]) -> ast.expr | None:
    """What `x.any()` or `torch.any(x)` goes over, where the call says nothing more."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in names or node.keywords:
        return None
    operands = _operands(node)
    return operands[0] if len(operands) == 1 else None


def _operands(call: ast.Call) -> list[ast.expr]:
    """A call's operands, the tensor that a method is called on first."""
    func = call.func
    is_method = isinstance(func, ast.Attribute) and last_name(func.value) not in _MODULES
    return [*([func.value] if is_method and isinstance(func, ast.Attribute) else []), *call.args]
