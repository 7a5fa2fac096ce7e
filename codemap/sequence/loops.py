"""Loops: unrolled where each pass is another part of the model, else leading back to their heads."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ..building.expressions import items_of
from ..building.heap import Raised
from ..building.signatures import Arguments
from ..building.statements import Flow, assign, either
from ..building.values import MORE, Frame, ObjectValue, TensorValue, Unknown, Value, join
from .events import BACKWARD, LOADER, STEP
from .operands import ITERATE, MOST_UNROLLED, walk_truth
from .walker import NUMBER, UNSURE, Generated, Loop, Number, Walker, holds_objects, may_be_tensor

_MOST_UNROLLED_NODES = 5_000
_JOINING = ("empty", "lift_fresh", "detach_", "to", "select", "unbind", "resolve_conj")
_SHUFFLING = ("empty", "random_", "item", "randperm", "resolve_conj", "resolve_neg", "unbind")
"""What a data loader's joining of items, and its start, show as."""
LOADER_CLASS = "torch.utils.data.DataLoader"


def walk_for(walker: Walker, node: ast.For | ast.AsyncFor, frame: Frame) -> Flow:
    """A `for` statement."""
    value = walker.evaluate(node.iter, frame)
    items = items_of(walker, value)
    loader = find_loader(walker, node.iter, frame)
    if loader is not None:
        walker.note(_SHUFFLING, 0.0, 0.02)
    if isinstance(value, TensorValue) or (isinstance(value, Unknown) and loader is None and may_be_tensor(value)):
        walker.note(ITERATE, UNSURE)
    if items is not None and MORE not in items and len(items) <= MOST_UNROLLED:
        flow = _unrolled(walker, node, frame, items)
        if flow is not None:
            return flow
    return _cycle(walker, node.body, node.orelse, frame, lambda: _next(walker, node, frame, value, items, loader))


def walk_while(walker: Walker, node: ast.While, frame: Frame) -> Flow:
    """A `while` statement: how often it goes round is not known."""

    def test() -> bool:
        walker.here.statement = walker.node = node
        value = walker.evaluate(node.test, frame)
        walk_truth(walker, node.test, value)
        return not (isinstance(node.test, ast.Constant) and bool(node.test.value))

    return _cycle(walker, node.body, node.orelse, frame, test)


def _unrolled(walker: Walker, node: ast.For | ast.AsyncFor, frame: Frame, items: Sequence[Value]) -> Flow | None:
    """Pass through the body for each item, where that is part of the model or shows as nothing; None where a loop
    that goes round describes the program as well."""
    from .flow import walk_block

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
    from .flow import walk_block

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
