"""The control flow of statements: which operators can follow which."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..building.expressions import binary, truth
from ..building.heap import Raised
from ..building.statements import Flow, assign, either
from ..building.values import Frame, ObjectValue, TensorValue, Unknown, Value, join
from .events import RANGE
from .loops import walk_for, walk_while
from .operands import ITERATE, operator_names, walk_index, walk_truth
from .running import call_method
from .walker import NUMBER, SURE, UNSURE, Generated, Number, Walker, may_be_tensor

_RAISED = 3.0
"""Cost of an exception being raised just here."""


def walk_block(walker: Walker, body: Sequence[ast.stmt], frame: Frame) -> Flow:
    """Run statements in order; how they end."""
    for statement in body:
        walker.budget.step()
        walker.here.statement = walker.node = statement
        run = _WALK.get(type(statement))
        start = walker.at
        try:
            flow = run(walker, statement, frame) if run is not None else walker.plain_execute(statement, frame)
        except Raised:
            if isinstance(statement, ast.Raise):
                walker.at = []
                raise
            # What the evaluator takes for a fault may be one of its own: go on behind the statement.
            walker.at = walker.at or start
            flow = Flow.NEXT
        if flow is not Flow.NEXT:
            return flow
    return Flow.NEXT


@dataclass(slots=True)
class _Branches:
    """Ways that control may take, each from the same nodes."""

    walker: Walker
    start: list[int]
    ends: list[int] = field(default_factory=list)

    def of(self, body: Sequence[ast.stmt], frame: Frame) -> Callable[[], Flow]:
        """A branch that runs statements."""

        def run() -> Flow:
            self.walker.at = list(self.start)
            flow = walk_block(self.walker, body, frame)
            self.ends += self.walker.at
            return flow

        return run

    def nothing(self) -> Flow:
        """The branch that does nothing."""
        self.ends += self.start
        return Flow.NEXT


def _return(walker: Walker, node: ast.Return, frame: Frame) -> Flow:
    frame.value = walker.evaluate(node.value, frame) if node.value is not None else None
    walker.here.returns += walker.at
    walker.at = []
    return Flow.RETURN


def _break(walker: Walker, _node: ast.Break, _frame: Frame) -> Flow:
    if walker.loops:
        walker.loops[-1].breaks += walker.at
    walker.at = []
    return Flow.BREAK


def _continue(walker: Walker, _node: ast.Continue, _frame: Frame) -> Flow:
    if walker.loops:
        walker.loops[-1].continues += walker.at
    walker.at = []
    return Flow.CONTINUE


def _if(walker: Walker, node: ast.If, frame: Frame) -> Flow:
    value = walker.evaluate(node.test, frame)
    walk_truth(walker, node.test, value)
    known = truth(value)
    if known is not None:
        return walk_block(walker, node.body if known else node.orelse, frame)
    branches = _Branches(walker, walker.at)
    try:
        flow = either(walker, frame, (branches.of(node.body, frame), branches.of(node.orelse, frame)))
    finally:
        walker.join_nodes(branches.ends)
    return flow


def _match(walker: Walker, node: ast.Match, frame: Frame) -> Flow:
    walker.evaluate(node.subject, frame)
    branches = _Branches(walker, walker.at)
    runs = [branches.of(case.body, frame) for case in node.cases]
    flow = either(walker, frame, [*runs, branches.nothing])
    walker.join_nodes(branches.ends)
    return flow


def _with(walker: Walker, node: ast.With | ast.AsyncWith, frame: Frame) -> Flow:
    managers: list[Value] = []
    around = walker.within
    for item in node.items:
        value = walker.evaluate(item.context_expr, frame)
        managers.append(value)
        name = range_name(item.context_expr, walker, frame)
        if name is not None:
            walker.note([RANGE + name] if name else [], 0.3)
            walker.within = walker.within.in_range(name) if name else walker.within
        if isinstance(value, ObjectValue) and value.cls is not None:
            value = call_method(walker, value, "__enter__", [], frame)
        if "profile" in ast.dump(item.context_expr) and not walker.forwards:
            walker.program.starts += walker.at
        if isinstance(value, Generated):
            value = join(list(value.yields))
        if item.optional_vars is not None:
            assign(walker, item.optional_vars, value, frame)
    try:
        flow = walk_block(walker, node.body, frame)
    finally:
        walker.within = around
    if walker.at:
        walker.here.statement = walker.node = node
        for value in reversed(managers):
            if isinstance(value, ObjectValue) and value.cls is not None:
                call_method(walker, value, "__exit__", [None, None, None], frame)
    return flow


def range_name(node: ast.expr, walker: Walker, frame: Frame) -> str | None:
    """The name of the range that a `with` opens; "" if it is not known, None if it opens none."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called != "record_function":
        return None
    value = walker.evaluated(node.args[0], frame)
    return value if isinstance(value, str) else ""


def _try(walker: Walker, node: ast.Try, frame: Frame) -> Flow:
    start = walker.at
    flow = Flow.NEXT
    try:
        flow = walk_block(walker, node.body, frame)
        if flow is Flow.NEXT:
            flow = walk_block(walker, node.orelse, frame)
    except Raised:
        pass
    ends = walker.at
    for handler in node.handlers:
        walker.at = [walker.program.add(None, start, _RAISED)] if start else []
        branches = _Branches(walker, walker.at)
        if handler.name:
            frame.names[handler.name] = NUMBER
        try:
            either(walker, frame, (branches.of(handler.body, frame), lambda: Flow.NEXT))
        except Raised:
            continue
        ends = [*ends, *branches.ends]
    walker.join_nodes(ends)
    last = walk_block(walker, node.finalbody, frame) if node.finalbody else Flow.NEXT
    return flow if last is Flow.NEXT else last


def _assign(walker: Walker, node: ast.Assign | ast.AnnAssign, frame: Frame) -> Flow:
    if node.value is None:
        return Flow.NEXT
    value = walker.evaluate(node.value, frame)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        walk_store(walker, target, value, frame)
    return Flow.NEXT


def walk_store(walker: Walker, target: ast.expr, value: Value, frame: Frame) -> None:
    """Bind a target, with the operators that storing runs."""
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, Number):
            for part in target.elts:
                walk_store(walker, part.value if isinstance(part, ast.Starred) else part, NUMBER, frame)
            return
        if isinstance(value, TensorValue):
            walker.note(ITERATE, SURE)
        elif isinstance(value, Unknown) and may_be_tensor(value):
            walker.note(ITERATE, UNSURE / 2)
        with walker.silence():
            assign(walker, target, value, frame)
        return
    if isinstance(target, ast.Subscript):
        held, index = walker.evaluate(target.value, frame), walker.evaluate(target.slice, frame)
        if may_be_tensor(held):
            walk_index(walker, target, held, index, is_store=True)
    with walker.silence():
        assign(walker, target, value, frame)


def _augmented(walker: Walker, node: ast.AugAssign, frame: Frame) -> Flow:
    held = walker.evaluate(node.target, frame)
    value = walker.evaluate(node.value, frame)
    if isinstance(held, list):
        with walker.silence():
            return walker.plain_execute(node, frame)
    if may_be_tensor(held) or may_be_tensor(value):
        is_sure = isinstance(held, TensorValue) or (isinstance(value, TensorValue) and not isinstance(held, Unknown))
        walker.note(operator_names(node.op, in_place=True), SURE if is_sure else UNSURE, node=node)
        result = held if isinstance(held, TensorValue) else binary(walker, node.op, held, value)
    else:
        result = binary(walker, node.op, held, value) if not walker.cycles else NUMBER
        if isinstance(result, Unknown):
            result = NUMBER
    if isinstance(node.target, ast.Subscript) and may_be_tensor(held):
        walker.note(["copy_", "fill_", "index_put_"], 0.3, node=node)
    with walker.silence():
        assign(walker, node.target, result, frame)
    return Flow.NEXT


def _assert(walker: Walker, node: ast.Assert, frame: Frame) -> Flow:
    walk_truth(walker, node.test, walker.evaluate(node.test, frame))
    return Flow.NEXT


_WALK: Mapping[type[ast.stmt], Callable[..., Flow]] = {
    ast.Return: _return,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.If: _if,
    ast.Match: _match,
    ast.For: walk_for,
    ast.AsyncFor: walk_for,
    ast.While: walk_while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Assign: _assign,
    ast.AnnAssign: _assign,
    ast.AugAssign: _augmented,
    ast.Assert: _assert,
}
