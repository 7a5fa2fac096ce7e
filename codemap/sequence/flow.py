"""The control flow of statements: which operators can follow which."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..building.expressions import binary, items_of, truth
from ..building.heap import Raised
from ..building.signatures import Arguments
from ..building.statements import _RUN, Flow, assign, either  # pyright: ignore[reportPrivateUsage]
from ..building.values import MORE, Frame, ObjectValue, TensorValue, Unknown, Value, join
from .events import BACKWARD, LOADER, RANGE, STEP
from .operands import ITERATE, operator_names, walk_index, walk_truth
from .walker import NUMBER, SURE, UNSURE, Generated, Loop, Number, Walker, holds_objects, may_be_tensor

_MOST_UNROLLED = 64
_MOST_UNROLLED_NODES = 5_000
_JOINING = ("empty", "lift_fresh", "detach_", "to", "select", "unbind", "resolve_conj")
_SHUFFLING = ("empty", "random_", "item", "randperm", "resolve_conj", "resolve_neg", "unbind")
"""What a data loader's joining of items, and its start, show as."""
_RAISED = 3.0
"""Cost of an exception being raised just here."""
LOADER_CLASS = "torch.utils.data.DataLoader"


def walk_block(walker: Walker, body: Sequence[ast.stmt], frame: Frame) -> Flow:
    """Run statements in order; how they end."""
    for statement in body:
        walker.budget.step()
        walker.here.statement = walker.node = statement
        run = _WALK.get(type(statement))
        start = walker.at
        try:
            if run is not None:
                flow = run(walker, statement, frame)
            else:
                plain = _RUN.get(type(statement))
                flow = plain(walker, statement, frame) if plain is not None else Flow.NEXT
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
    ends: list[int]

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
    branches = _Branches(walker, walker.at, [])
    try:
        flow = either(walker, frame, (branches.of(node.body, frame), branches.of(node.orelse, frame)))
    finally:
        walker.join_nodes(branches.ends)
    return flow


def _match(walker: Walker, node: ast.Match, frame: Frame) -> Flow:
    walker.evaluate(node.subject, frame)
    branches = _Branches(walker, walker.at, [])
    runs = [branches.of(case.body, frame) for case in node.cases]
    flow = either(walker, frame, [*runs, branches.nothing])
    walker.join_nodes(branches.ends)
    return flow


def _for(walker: Walker, node: ast.For | ast.AsyncFor, frame: Frame) -> Flow:
    value = walker.evaluate(node.iter, frame)
    items = items_of(walker, value)
    loader = find_loader(walker, node.iter, frame)
    if loader is not None:
        walker.note(_SHUFFLING, 0.0, 0.02)
    if isinstance(value, TensorValue) or (isinstance(value, Unknown) and loader is None and may_be_tensor(value)):
        walker.note(ITERATE, UNSURE)
    if items is not None and MORE not in items and len(items) <= _MOST_UNROLLED:
        flow = _unrolled(walker, node, frame, items)
        if flow is not None:
            return flow
    return _cycle(walker, node.body, node.orelse, frame, lambda: _next(walker, node, frame, value, items, loader))


def _unrolled(walker: Walker, node: ast.For | ast.AsyncFor, frame: Frame, items: Sequence[Value]) -> Flow | None:
    """Pass through the body for each item, where that is part of the model or shows as nothing; None where a loop
    that goes round describes the program as well."""
    program, start = walker.program, walker.at
    before = len(program.nodes)
    loop, loops = Loop([], []), walker.loops
    is_model = walker.forwards > 0 or any(holds_objects(item) for item in items)
    returns = list(walker.here.returns)
    starts = list(program.starts)
    flow = Flow.NEXT
    fits = True

    def run() -> None:
        nonlocal flow, fits
        walker.loops = [*loops, loop]
        for item in items:
            assign(walker, node.target, item, frame)
            walker.here.statement = walker.node = node
            flow = walk_block(walker, node.body, frame)
            walker.at = [*walker.at, *loop.continues]
            loop.continues.clear()
            added = program.nodes[before:]
            is_step = any(one is not None and (STEP in one.names or BACKWARD in one.names) for one in added)
            if (added and (not is_model or is_step)) or len(added) > _MOST_UNROLLED_NODES:
                fits = len(items) == 1
                return
            if flow in (Flow.RETURN, Flow.BREAK):
                return

    layer = walker.heap.attempt(run)
    walker.loops = loops
    if not fits:
        del program.nodes[before:], program.before[before:]
        walker.at, walker.here.returns, program.starts[:] = start, returns, starts
        return None
    walker.heap.join([layer])
    walker.join_nodes([*walker.at, *loop.breaks])
    if flow is Flow.RETURN:
        return flow
    return walk_block(walker, node.orelse, frame) if flow is not Flow.BREAK else Flow.NEXT


def _cycle(
    walker: Walker, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], frame: Frame, enter: Callable[[], bool]
) -> Flow:
    """A loop that goes round. `enter` is its test or next item: whether the loop may end there."""
    head = walker.program.add(None, walker.at)
    walker.at = [head]
    if not walker.forwards:
        walker.program.starts.append(head)
    loop, loops = Loop([], []), walker.loops
    walker.loops = [*loops, loop]
    walker.cycles += 1
    exits: list[int] = []

    def once() -> Flow:
        _forget(walker, body, frame)
        may_end = enter()
        exits.extend(walker.at if may_end else ())
        flow = walk_block(walker, body, frame)
        walker.program.link([*walker.at, *loop.continues], head)
        return flow if flow is Flow.RETURN else Flow.NEXT

    try:
        flow = either(walker, frame, (once, lambda: Flow.NEXT))
    finally:
        walker.cycles -= 1
        walker.loops = loops
    walker.join_nodes([*exits, *loop.breaks])
    if flow is Flow.RETURN:
        return flow
    return walk_block(walker, orelse, frame)


def _next(
    walker: Walker,
    node: ast.For | ast.AsyncFor,
    frame: Frame,
    value: Value,
    items: Sequence[Value] | None,
    loader: Value,
) -> bool:
    walker.here.statement = walker.node = node
    if loader is not None or items is None:
        walk_loader(walker, loader, frame)
    walker.here.statement = walker.node = node
    if isinstance(value, Generated):
        items = value.yields
    if items:
        known = [item for item in items if item is not MORE]
        item = NUMBER if isinstance(value, range) else join(known[:6]) if known else Unknown("an item")
    else:
        item = NUMBER if isinstance(value, Number) else Unknown("an item of a sequence that is not known")
    call = node.iter
    if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "enumerate" and not items:
        assign(walker, node.target, (NUMBER, Unknown("an item of a sequence that is not known")), frame)
    else:
        assign(walker, node.target, item, frame)
    return True


def _while(walker: Walker, node: ast.While, frame: Frame) -> Flow:
    def test() -> bool:
        walker.here.statement = walker.node = node
        value = walker.evaluate(node.test, frame)
        walk_truth(walker, node.test, value)
        return not (isinstance(node.test, ast.Constant) and bool(node.test.value))

    return _cycle(walker, node.body, node.orelse, frame, test)


def _forget(walker: Walker, body: Sequence[ast.stmt], frame: Frame) -> None:
    """What a loop's body sets has, on the way round, no value that is known."""
    names: set[str] = set()
    for statement in body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                names.add(part.id)
    walker.heap.write(frame.names)
    for name in names & frame.names.keys():
        value = frame.names[name]
        if isinstance(value, TensorValue):
            frame.names[name] = TensorValue(None, "")
        elif isinstance(value, (int, float, bool, str, tuple, type(None))):
            frame.names[name] = Unknown("set in a loop")


def find_loader(walker: Walker, node: ast.expr, frame: Frame) -> Value:
    """The data loader that a loop goes over, through `enumerate`, progress bars and the like; None if there is none."""
    if isinstance(node, ast.Call):
        for argument in node.args[:2]:
            found = find_loader(walker, argument, frame)
            if found is not None:
                return found
        return None
    if isinstance(node, (ast.Name, ast.Attribute)):
        try:
            value = walker.evaluated(node, frame)
        except Raised:
            return None
        if isinstance(value, ObjectValue) and value.dotted == LOADER_CLASS:
            return value
    return None


def walk_loader(walker: Walker, loader: Value, frame: Frame) -> None:
    """The next batch: the data set's items, one after another, and what joins them."""
    from .running import call_method

    walker.note([LOADER], UNSURE if loader is not None else 0.0)
    if not isinstance(loader, ObjectValue):
        return
    head = walker.program.add(None, walker.at)
    walker.at = [head]
    data = loader.attributes.get("dataset")
    if isinstance(data, ObjectValue) and data.cls is not None:
        call_method(walker, data, "__getitem__", [NUMBER], frame)
        walker.program.link(walker.at, head)
        walker.at = [head, *walker.at]
    collate = loader.attributes.get("collate_fn")
    if collate is not None and not isinstance(collate, Unknown):
        walker.call(collate, Arguments([Unknown("a batch's items")]), walker.node, frame)
    else:
        walker.note({"stack": 0.0, **dict.fromkeys(_JOINING, 0.2)}, 0.0, 0.05)
        walker.wildcard(0.35, 0.0)


def _with(walker: Walker, node: ast.With | ast.AsyncWith, frame: Frame) -> Flow:
    from .running import call_method

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
        branches = _Branches(walker, walker.at, [])
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
            return _RUN[ast.AugAssign](walker, node, frame)
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
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Assign: _assign,
    ast.AnnAssign: _assign,
    ast.AugAssign: _augmented,
    ast.Assert: _assert,
}
