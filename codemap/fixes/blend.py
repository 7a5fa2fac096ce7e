"""A loop that blends tensors into their running averages, one pair at a time: `ema = decay * ema + weight * new`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from .finite import Reader
from .outline import Outline, find, last_name
from .parameters import Walk


@dataclass(frozen=True, slots=True)
class Blend:
    """What one round of the loop does."""

    ema: ast.expr
    new: ast.expr
    decay: ast.expr
    weight: ast.expr
    is_stored: bool = False
    """Whether the blend is a new tensor that is stored under the average's key."""
    takes_integers: bool = False
    """Whether the loop would also take tensors of integers, which a multi-tensor blend doesn't."""


@dataclass(slots=True)
class BlendLoop:
    """A loop that does nothing but blend."""

    loop: ast.For
    walk: Walk
    aliases: dict[str, ast.expr] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    blend: Blend | None = None

    def text(self, node: ast.expr) -> str:
        """A tensor as the loop's header would let it be written: names that the body gives are spelt out."""
        match node:
            case ast.Name(id=name) if name in self.aliases:
                return self.text(self.aliases[name])
            case ast.Attribute(value=value, attr=attribute):
                return f"{self.text(value)}.{attribute}"
            case ast.Call(func=function, args=[], keywords=[]):
                return f"{self.text(function)}()"
            case _:
                return self.walk.file.segment(node)


def blend_loop(file: Outline, loop: ast.For) -> BlendLoop | None:
    """The loop as a blend; None where it does anything else."""
    found = BlendLoop(loop, Walk(file, loop.target, loop.iter))
    return found if not loop.orelse and _read(found, loop.body) and found.blend is not None else None


def _read(found: BlendLoop, statements: list[ast.stmt]) -> bool:
    """Sort a body's statements; False where one is of no kind that a multi-tensor blend stands in for."""
    for position, statement in enumerate(statements):
        reader = Reader(found.walk, found.aliases)
        match statement:
            case ast.If(test=test, body=[ast.Continue()], orelse=[]):
                condition = reader.condition(test, negated=True)
            case ast.If(test=test, body=inner, orelse=[]) if statement is statements[-1]:
                condition = reader.condition(test)
                if not _read(found, inner):
                    return False
            case ast.Assert(test=ast.Compare(ops=[ast.In()])):
                continue  # an average that is missing is a KeyError just as well
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if position < len(statements) - 1:
                found.aliases[name] = value
                continue
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(
                values
            ) and all(isinstance(name, ast.Name) for name in names):
                found.aliases.update(zip((last_name(name) for name in names), values, strict=True))
                continue
            case _:
                blending = _Blending(found.walk, found.aliases)
                found.blend = blending.of(statements[position:])
                return found.blend is not None
        if condition is None:
            return False
        found.conditions.append(condition)
    return True


@dataclass(frozen=True, slots=True)
class _Blending:
    """Reads the statements of one round."""

    walk: Walk
    aliases: Mapping[str, ast.expr]

    def of(self, statements: list[ast.stmt]) -> Blend | None:
        """The blend that one or two statements make."""
        if len(statements) == 2:
            scaled = self._scaled(statements[0])
            added = self._added(statements[1])
            if scaled is None or added is None or not self._is_same(scaled[0], added[0]):
                return None
            return Blend(scaled[0], added[2], scaled[1], added[1])
        return self._of_one(statements[0]) if len(statements) == 1 else None

    def _of_one(self, statement: ast.stmt) -> Blend | None:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="add_", value=ast.Call() as scaling))):
                scaled, added = self._scaled(ast.Expr(scaling)), self._added(statement)
                return Blend(scaled[0], added[2], scaled[1], added[1]) if scaled and added else None
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="lerp_", value=ema), args=[new, weight], keywords=[])):
                one = ast.BinOp(ast.Constant(1), ast.Sub(), weight)
                return Blend(ema, new, one, weight)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="copy_", value=ema), args=[value], keywords=[])):
                return self._of_sum(ema, value, takes_integers=True)
            case ast.Assign(targets=[ast.Attribute(attr="data", value=ema)], value=value):
                return self._of_sum(ast.Attribute(ema, "data"), value, takes_integers=True)
            case ast.Assign(targets=[ast.Subscript() as ema], value=value):
                return self._of_sum(ema, value, is_stored=True)
            case _:
                return None

    def _of_sum(
        self, ema: ast.expr, value: ast.expr, *, is_stored: bool = False, takes_integers: bool = False
    ) -> Blend | None:
        """`decay * ema + weight * new`, in either order, the result cloned or not."""
        value = self._plain(value)
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
            return None
        parts = [self._product(value.left), self._product(value.right)]
        if parts[0] is None or parts[1] is None:
            return None
        if not self._is_same(parts[0][1], ema):
            parts.reverse()
        old, new = parts
        if old is None or new is None or not self._is_same(old[1], ema) or self._is_same(new[1], ema):
            return None
        return Blend(ema, new[1], old[0], new[0], is_stored, takes_integers)

    def _scaled(self, statement: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
        """The average and its factor: `ema.mul_(decay)`, `ema *= decay`."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="mul_", value=ema), args=[decay], keywords=[])):
                pass
            case ast.AugAssign(target=ast.Name() | ast.Attribute(attr="data") as ema, op=ast.Mult(), value=decay):
                pass
            case _:
                return None
        return (ema, decay) if self._is_of_loop(ema) and not self._is_of_loop(decay) else None

    def _added(self, statement: ast.stmt) -> tuple[ast.expr, ast.expr, ast.expr] | None:
        """The average, the weight and what is added: `ema.add_(new, alpha=weight)`, `ema += weight * new`."""
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="add_", value=ema), args=[new], keywords=[ast.keyword("alpha", weight)]
                )
            ):
                return (ema, weight, new) if self._is_of_loop(new) and not self._is_of_loop(weight) else None
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="add_", value=ema), args=[value], keywords=[])):
                product = self._product(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="add_", value=ema), args=[weight, new], keywords=[])):
                # The order of old versions, `add_(weight, new)`.
                product = (weight, new) if self._is_of_loop(new) and not self._is_of_loop(weight) else None
            case ast.AugAssign(target=ast.Name() | ast.Attribute(attr="data") as ema, op=ast.Add(), value=value):
                product = self._product(value)
            case _:
                return None
        return (ema, *product) if product else None

    def _product(self, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """The factor and the tensor of `factor * tensor` or `tensor * factor`."""
        node = self._plain(node)
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            return None
        left, right = self._is_of_loop(node.left), self._is_of_loop(node.right)
        if left == right:
            return None
        return (node.right, node.left) if left else (node.left, node.right)

    def _plain(self, node: ast.expr) -> ast.expr:
        """What a name of the loop stands for, and what is cloned."""
        if isinstance(node, ast.Name) and node.id in self.aliases:
            return self._plain(self.aliases[node.id])
        if isinstance(node, ast.Call) and last_name(node.func) == "clone" and isinstance(node.func, ast.Attribute):
            return self._plain(node.func.value)
        return node

    def _is_of_loop(self, node: ast.expr) -> bool:
        """Whether an expression depends on the loop's own names."""
        names = {*self.aliases, *(name.id for name in find(self.walk.target, ast.Name))}
        return any(name.id in names for name in find(node, ast.Name))

    def _is_same(self, one: ast.expr, other: ast.expr) -> bool:
        return self._key(one) == self._key(other)

    def _key(self, node: ast.expr) -> str:
        """A tensor's text without what only leaves the graph."""
        node = self._plain(node)
        if isinstance(node, ast.Attribute) and node.attr == "data":
            return self._key(node.value)
        if isinstance(node, ast.Call) and last_name(node.func) == "detach" and isinstance(node.func, ast.Attribute):
            return self._key(node.func.value)
        return ast.unparse(node)


def are_complements(file: Outline, decay: ast.expr, weight: ast.expr) -> bool:
    """Whether two factors add up to one, as far as their text shows it: `d` and `1 - d`, 0.999 and 0.001."""
    return any(_is_one_minus(first, second) for first in _written(file, decay) for second in _written(file, weight))


def _is_one_minus(one: ast.expr, other: ast.expr) -> bool:
    if isinstance(one, ast.Constant) and isinstance(other, ast.Constant):
        first, second = one.value, other.value
        return isinstance(first, float) and isinstance(second, float) and abs(first + second - 1) < 1e-9
    return any(
        isinstance(first, ast.BinOp)
        and isinstance(first.op, ast.Sub)
        and isinstance(first.left, ast.Constant)
        and first.left.value == 1
        and ast.dump(first.right) == ast.dump(second)
        for first, second in ((one, other), (other, one))
    )


def _written(file: Outline, node: ast.expr) -> list[ast.expr]:
    """A factor as it stands, and what its name was given where that is one thing."""
    values = [binding.value for binding in file.lookup(node)] if isinstance(node, ast.Name) else []
    return [node, *(value for value in values if value is not None and len(values) == 1)]
