"""The actions of expressions, in evaluation order: the part of the grammar below statements."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from . import operators
from .automaton import NEVER, Action, Automaton
from .callees import call_action
from .index import ClassFacts, FileIndex

COMPREHENSION_FRAME: dict[type[ast.expr], str] = {
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}

_PAIRS = frozenset({"enumerate", "zip", "items"})
_ITERATORS = frozenset({"enumerate", "zip", "map", "filter", "iter", "reversed", "range"})

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class ExpressionBuilder:
    """Adds actions to an automaton. `self.at` holds the nodes that control may have just left."""

    def __init__(self, index: FileIndex, owner: ClassFacts | None) -> None:
        self.automaton = Automaton()
        self.index = index
        self.owner = owner
        self.statement: ast.AST = ast.Pass()
        self.at: list[int] = []
        self._node(None)

    # Nodes

    def _node(self, action: Action | None, at: Sequence[int] | None = None) -> int:
        """Add a node after `at` (by default where control is) and move control to it."""
        number = len(self.automaton.actions)
        self.automaton.actions.append(action)
        self.automaton.before.append([(source, 0.0) for source in dict.fromkeys(self.at if at is None else at)])
        self.at = [number]
        return number

    def _act(self, node: ast.AST, exact: Mapping[str, float], skip: float = 0.0, repeat: float = NEVER) -> int:
        return self._node(Action(node, self.statement, exact, skip=skip, repeat=repeat))

    def _back_to(self, head: int, sources: Iterable[int]) -> None:
        self.automaton.before[head].extend((source, 0.0) for source in dict.fromkeys(sources))

    # Expressions

    def _expression(self, node: ast.expr) -> None:
        handler = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if handler is not None:
            handler(node)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self._expression(child)

    def _test(self, node: ast.expr) -> None:
        self._expression(node)
        if not isinstance(node, (ast.BoolOp, ast.Constant)):
            self._act(node, operators.TRUTH)

    def _store(self, target: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            self._act(target, dict.fromkeys(operators.ITERATE, 0.15), 0.0, 0.1)
            for element in target.elts:
                self._store(element)
        elif isinstance(target, ast.Starred):
            self._store(target.value)
        elif isinstance(target, ast.Subscript):
            self._expression(target.value)
            self._expression(target.slice)
            self._indexing(target, operators.SET_ITEM, operators.INDEX_STORED)
        elif isinstance(target, ast.Attribute):
            self._expression(target.value)
            self._act(target, {"f:__setattr__": 0.0, f"f:{target.attr}": 0.0, "o:set_data": 0.0})

    def _loop_target(self, target: ast.expr, iterable: ast.expr) -> None:
        """Pairs of `enumerate`, `zip` and `items` are tuples: taking them apart runs nothing."""
        is_pair = isinstance(iterable, ast.Call) and last_name(iterable) in _PAIRS
        if is_pair and isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._store(element)
        else:
            self._store(target)

    def _of_call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            self._expression(node.func.value)
            self._attribute_read(node.func, {})
        else:
            self._expression(node.func)
        for argument in node.args:
            self._expression(argument)
        for keyword in node.keywords:
            self._expression(keyword.value)
        self._node(call_action(node, self.statement, self.index, self.owner))

    def _of_attribute(self, node: ast.Attribute) -> None:
        self._expression(node.value)
        self._attribute_read(node, {f"f:{node.attr}": 0.05})

    def _attribute_read(self, node: ast.Attribute, own: dict[str, float]) -> None:
        """`own` is what a property shows as; the name of a method that is called next shows as the call."""
        keys = {**own, "f:__getattr__": 0.0, "f:__get__": 0.1}
        if node.attr in operators.PROPERTIES:
            keys |= {f"o:{name}": 0.0 for name in operators.PROPERTIES[node.attr]}
            self._act(node, keys, 0.0, 0.1)
        elif self.index.dotted(node).partition(".")[0] not in self.index.imports.values():
            self._act(node, keys)

    def _of_subscript(self, node: ast.Subscript) -> None:
        self._expression(node.value)
        self._expression(node.slice)
        self._indexing(node, operators.GET_ITEM, operators.INDEX_RESULT)

    def _indexing(self, node: ast.Subscript, method: dict[str, float], result: dict[str, float]) -> None:
        """`x[i, a:b, None]`: a method of an object, or one operator for each index of a tensor and one at the end."""
        self._act(node, method)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for index in indices:
            if isinstance(index, ast.Slice):
                if index.lower or index.upper or index.step:
                    self._act(node, operators.INDEX_SLICE, 0.05)
            elif isinstance(index, ast.Constant):
                if isinstance(index.value, str):
                    return
                keys = operators.INDEX_NONE if index.value is None else operators.INDEX_NUMBER
                if index.value is not ...:
                    self._act(node, keys, 0.05)
            elif isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant):
                self._act(node, operators.INDEX_NUMBER, 0.05)
            else:
                self._act(node, operators.INDEX_ANY, 0.05, 0.1)
        self._act(node, result, 0.05 if result is operators.INDEX_STORED else 0.0, 0.1)

    def _of_binop(self, node: ast.BinOp) -> None:
        self._expression(node.left)
        self._expression(node.right)
        self._act(node, operators.binary(node.op), 0.2)

    def _of_unaryop(self, node: ast.UnaryOp) -> None:
        self._expression(node.operand)
        if not isinstance(node.operand, ast.Constant):
            self._act(node, operators.unary(node.op), 0.1)

    def _of_compare(self, node: ast.Compare) -> None:
        self._expression(node.left)
        left: list[int] = []
        for position, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if position:
                self._act(node, operators.TRUTH)
                left += self.at
            self._expression(right)
            if keys := operators.compare(operator):
                self._act(node, keys, 0.1)
        self.at = [*self.at, *left]

    def _of_boolop(self, node: ast.BoolOp) -> None:
        decided: list[int] = []
        for value in node.values:
            self._test(value)
            decided += self.at
        self.at = decided

    def _of_ifexp(self, node: ast.IfExp) -> None:
        self._test(node.test)
        start = self.at
        self._expression(node.body)
        end = self.at
        self.at = start
        self._expression(node.orelse)
        self.at = [*end, *self.at]

    def _of_lambda(self, node: ast.Lambda) -> None:
        """Its body runs in a frame of its own."""

    def _of_namedexpr(self, node: ast.NamedExpr) -> None:
        self._expression(node.value)

    def _of_formattedvalue(self, node: ast.FormattedValue) -> None:
        self._expression(node.value)
        self._act(node, operators.FORMAT)

    def _of_starred(self, node: ast.Starred) -> None:
        self._expression(node.value)
        self._act(node, operators.ITERATE, 0.0, 0.1)

    def _of_dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self._expression(key)
            self._expression(value)

    def _of_await(self, node: ast.Await | ast.Yield | ast.YieldFrom) -> None:
        if node.value is not None:
            self._expression(node.value)
        exact = {} if isinstance(node, ast.Yield) else {"f:__await__": 0.0, "f:__iter__": 0.0}
        self.automaton.resumes.append(self._act(node, exact, 0.0, 0.1))

    _of_yield = _of_await
    _of_yieldfrom = _of_await

    def _of_listcomp(self, node: Comprehension) -> None:
        """A frame of its own up to Python 3.11, part of the function from 3.12 on; a generator is always the former."""
        self._iterable(node.generators[0].iter)
        start, frame = self.at, COMPREHENSION_FRAME[type(node)]
        if isinstance(node, ast.GeneratorExp):
            self._act(node, {f"f:{frame}": 0.0}, 0.0, 0.0)
            return
        self._act(node, {f"f:{frame}": 0.0}, skip=1e3)
        own = self.at
        self.at = start
        self._generators(node, node.generators, first_is_given=True)
        self.at = [*own, *self.at]

    _of_setcomp = _of_listcomp
    _of_dictcomp = _of_listcomp
    _of_generatorexp = _of_listcomp

    def _generators(self, node: Comprehension, loops: list[ast.comprehension], *, first_is_given: bool) -> None:
        """Nested loops of a comprehension; the first iterable is evaluated outside."""
        if not loops:
            if isinstance(node, ast.DictComp):
                self._expression(node.key)
                self._expression(node.value)
            else:
                self._expression(node.elt)
            if isinstance(node, ast.GeneratorExp):
                self.automaton.resumes.extend([self._node(None)])
            return
        loop = loops[0]
        if not first_is_given:
            self._iterable(loop.iter)
        head = self._node(None)
        self._act(loop.iter, self._next_keys(loop.iter))
        exits = [head, *self.at]
        self._loop_target(loop.target, loop.iter)
        rejected: list[int] = []
        for condition in loop.ifs:
            self._test(condition)
            rejected += self.at
        self._generators(node, loops[1:], first_is_given=False)
        self._back_to(head, [*self.at, *rejected])
        self.at = exits

    def _iterable(self, node: ast.expr) -> None:
        """What a loop goes over. `zip(...)` and the like ask their arguments for iterators, and are ones themselves."""
        self._expression(node)
        if not (isinstance(node, ast.Call) and last_name(node) in _ITERATORS):
            self._act(node, operators.ITERATE, 0.0, 0.1)

    def _next_keys(self, iterable: ast.expr) -> dict[str, float]:
        """What the next item of a loop may show as; a generator function's frame has the function's name."""
        names = {last_name(part.func) for part in ast.walk(iterable) if isinstance(part, ast.Call)}
        return {**operators.NEXT, **{f"f:{name}": 0.1 for name in names if name}}


def last_name(node: ast.expr) -> str:
    """The bare name at the end of a callee: `b` of `a.b`, of `a.b(...)`."""
    while isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
