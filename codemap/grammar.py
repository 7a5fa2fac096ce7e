"""A function's body as an automaton over the events that running it can leave in a trace.

Nodes are *actions*, things that may show as an event (a call, an operator, an attribute read, a loop's next item), in
evaluation order; edges are the control flow between them. `align.py` finds the cheapest path through it. Costs are in
"surprises": 0 is what the grammar expects, 1 is what would need an explanation.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from . import operators
from .automaton import NEVER, Action, Automaton
from .expressions import Comprehension, ExpressionBuilder, last_name
from .index import ClassFacts, FileIndex

RAISE_COST = 3.0
"""That an exception was raised just here."""
CodeNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module | ast.ClassDef | Comprehension
"""Whatever has a frame of its own."""


def compile_code(code: CodeNode, index: FileIndex, owner: ClassFacts | None = None) -> Automaton:
    """The automaton of a function, lambda, comprehension, class body or module. `owner` is a method's class."""
    builder = _Builder(index, owner)
    builder.run(code)
    return builder.automaton


@dataclass(slots=True)
class _Escapes:
    """Where control leaves a block other than at its end."""

    returns: list[int] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    continues: list[int] = field(default_factory=list)

    def each(self) -> tuple[list[int], list[int], list[int]]:
        return self.returns, self.breaks, self.continues


class _Builder(ExpressionBuilder):
    """Walks a body's statements."""

    def __init__(self, index: FileIndex, owner: ClassFacts | None) -> None:
        super().__init__(index, owner)
        self.escapes = _Escapes()

    def run(self, code: CodeNode) -> None:
        if isinstance(code, ast.Lambda):
            self.statement = code
            self._expression(code.body)
        elif isinstance(code, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self.statement = code
            self._generators(code, code.generators, first_is_given=True)
        else:
            self._block(code.body)
        self.at = [*self.at, *self.escapes.returns]
        self._node(None)

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.statement = statement
            handler = getattr(self, f"_do_{type(statement).__name__.lower()}", None)
            if handler is not None:
                handler(statement)
            else:
                for child in ast.iter_child_nodes(statement):
                    if isinstance(child, ast.expr):
                        self._expression(child)

    def _do_assign(self, node: ast.Assign) -> None:
        self._expression(node.value)
        is_shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        for target in node.targets:
            if not is_shape:
                self._store(target)

    def _do_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._expression(node.value)
            self._store(node.target)

    def _do_augassign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            self._expression(target.value)
            if isinstance(target, ast.Subscript):
                self._expression(target.slice)
                self._indexing(target, operators.GET_ITEM, operators.INDEX_RESULT)
        self._expression(node.value)
        self._act(node, operators.binary(node.op, in_place=True), 0.2)
        if isinstance(target, ast.Subscript):
            self._indexing(target, operators.SET_ITEM, operators.INDEX_STORED)
        elif isinstance(target, ast.Attribute):
            self._act(target, {"f:__setattr__": 0.0, f"f:{target.attr}": 0.0})

    def _do_return(self, node: ast.Return) -> None:
        if node.value is not None:
            self._expression(node.value)
        self.escapes.returns += self.at
        self.at = []

    def _do_raise(self, node: ast.Raise) -> None:
        for child in (node.exc, node.cause):
            if child is not None:
                self._expression(child)
        self.escapes.returns += self.at
        self.at = []

    def _do_break(self, node: ast.Break) -> None:
        self.escapes.breaks += self.at
        self.at = []

    def _do_continue(self, node: ast.Continue) -> None:
        self.escapes.continues += self.at
        self.at = []

    def _do_if(self, node: ast.If) -> None:
        self._test(node.test)
        start = self.at
        self._block(node.body)
        end = self.at
        self.at = start
        self._block(node.orelse)
        self.at = [*end, *self.at]

    def _do_assert(self, node: ast.Assert) -> None:
        self._test(node.test)

    def _do_while(self, node: ast.While) -> None:
        head = self._node(None)
        self._test(node.test)
        outside = self.at
        is_endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        self._loop_body(node, head, [] if is_endless else outside)

    def _do_for(self, node: ast.For | ast.AsyncFor) -> None:
        self._iterable(node.iter)
        head = self._node(None)
        self._act(node.iter, self._next_keys(node.iter), 0.0)
        if isinstance(node, ast.AsyncFor):
            self.automaton.resumes.append(self.at[0])
        exhausted = [head, *self.at]
        self._loop_target(node.target, node.iter)
        self._loop_body(node, head, exhausted)

    _do_asyncfor = _do_for

    def _loop_body(self, node: ast.For | ast.AsyncFor | ast.While, head: int, exits: list[int]) -> None:
        """The body of a loop whose test or next item control has just passed."""
        outer = self.escapes
        self.escapes = _Escapes(returns=outer.returns)
        self._block(node.body)
        self._back_to(head, [*self.at, *self.escapes.continues])
        self.at = exits
        self._block(node.orelse)
        self.at = [*self.at, *self.escapes.breaks]
        self.escapes = outer

    def _do_with(self, node: ast.With | ast.AsyncWith) -> None:
        header = self.statement
        for item in node.items:
            self._expression(item.context_expr)
            self._act(item.context_expr, operators.ENTER)
            if item.optional_vars is not None:
                self._store(item.optional_vars)
        inner, outer = self._escaping(node.body)
        self.statement = header

        def leave() -> None:
            for item in reversed(node.items):
                self._act(item.context_expr, operators.EXIT)

        self._cleanup(inner, outer, leave)

    _do_asyncwith = _do_with

    def _do_try(self, node: ast.Try) -> None:
        first = len(self.automaton.actions)
        start = self.at
        if not node.finalbody:
            self._try_body(node, start, first)
            return
        outer = self.escapes
        self.escapes = _Escapes()
        self._try_body(node, start, first)
        inner, self.escapes = self.escapes, outer
        self._cleanup(inner, outer, lambda: self._block(node.finalbody))

    _do_trystar = _do_try

    def _try_body(self, node: ast.Try, start: list[int], first: int) -> None:
        self._block(node.body)
        raising = [*start, *range(first, len(self.automaton.actions))]
        self._block(node.orelse)
        ends = list(self.at)
        for handler in node.handlers:
            self._node(None, at=())
            self.automaton.before[self.at[0]] = [(source, RAISE_COST) for source in raising]
            self.statement = handler
            if handler.type is not None:
                self._expression(handler.type)
            self._block(handler.body)
            ends += self.at
        self.at = ends

    def _escaping(self, body: Sequence[ast.stmt]) -> tuple[_Escapes, _Escapes]:
        """Run a block with escapes of its own; they and the outer ones."""
        outer = self.escapes
        self.escapes = _Escapes()
        self._block(body)
        inner, self.escapes = self.escapes, outer
        return inner, outer

    def _cleanup(self, inner: _Escapes, outer: _Escapes, leave: Callable[[], None]) -> None:
        """What runs on every way out of a block (`finally`, `__exit__`): once for its end, once for each escape."""
        leave()
        end = self.at
        for escaped, target in zip(inner.each(), outer.each(), strict=True):
            if escaped:
                self.at = escaped
                leave()
                target += self.at
        self.at = end

    def _do_match(self, node: ast.Match) -> None:
        self._expression(node.subject)
        start, ends = self.at, []
        for case in node.cases:
            self.at = start
            for part in ast.walk(case.pattern):
                if isinstance(part, ast.MatchValue):
                    self._act(part.value, {**operators.compare(ast.Eq()), **operators.TRUTH}, 0.0, 0.1)
                elif isinstance(part, ast.MatchClass):
                    self._act(part.cls, {"f:__instancecheck__": 0.0})
            if case.guard is not None:
                self._test(case.guard)
            start = [*start, *self.at]
            self._block(case.body)
            ends += self.at
        self.at = [*ends, *start]

    def _do_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self._expression(decorator)
        if not isinstance(node, ast.ClassDef):
            for default in [*node.args.defaults, *node.args.kw_defaults]:
                if default is not None:
                    self._expression(default)
        else:
            for base in [*node.bases, *(keyword.value for keyword in node.keywords)]:
                self._expression(base)
            self._act(node, {"b:__build_class__": 0.0, f"f:{node.name}": 0.0}, 0.0, 0.0)
        for decorator in reversed(node.decorator_list):
            name = last_name(decorator)
            self._node(Action(decorator, self.statement, {f"f:{name}": 0.0}, (0.4, 1.0, NEVER, NEVER)))

    _do_asyncfunctiondef = _do_functiondef
    _do_classdef = _do_functiondef

    def _do_import(self, node: ast.Import | ast.ImportFrom) -> None:
        self._act(node, operators.IMPORT, 0.0, 0.0)

    _do_importfrom = _do_import

    def _do_delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, (ast.Attribute, ast.Subscript)):
                self._expression(target.value)
            self._act(target, {"f:__delitem__": 0.0, "f:__delattr__": 0.0, "f:__del__": 0.0}, 0.0, 0.0)
