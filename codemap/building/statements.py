"""What statements do to the names and objects that they see."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from .assignments import assign, bind_name
from .definitions import define_class, define_function
from .heap import Layer, Raised
from .layers import CONTAINERS
from .objects import delete_attribute, delete_item
from .operators import binary, compare, items_of, truth
from .signatures import Arguments
from .values import (
    MORE,
    Frame,
    ImportValue,
    LibraryValue,
    ModuleValue,
    NativeMethod,
    Unknown,
    Value,
    join,
)

if TYPE_CHECKING:
    from .machine import Machine

_MOST_WHILE = 500


class Flow(IntEnum):
    """How statements end."""

    NEXT = 0
    RETURN = 1
    BREAK = 2
    CONTINUE = 3


def execute(machine: Machine, body: Sequence[ast.stmt], frame: Frame) -> Flow:
    """Run statements in order."""
    for statement in body:
        machine.budget.step()
        run = _RUN.get(type(statement))
        flow = run(machine, statement, frame) if run is not None else Flow.NEXT
        if flow is not Flow.NEXT:
            return flow
    return Flow.NEXT


def either(machine: Machine, frame: Frame, branches: Sequence[Callable[[], Flow]]) -> Flow:
    """Run branches of which it is not known which one is taken, and join what they did."""
    going_on: list[Layer] = []
    flows: list[Flow] = []
    values: list[Value] = []
    for branch in branches:
        ended: list[Flow] = []

        def run(branch: Callable[[], Flow] = branch, ended: list[Flow] = ended) -> None:
            ended.append(branch())

        try:
            layer = machine.heap.attempt(run)
        except Raised:
            continue
        if ended[0] is Flow.RETURN:
            values.append(frame.value)
        else:
            going_on.append(layer)
            flows.append(ended[0])
    if going_on:
        machine.heap.join(going_on)
        frame.returned.extend(values)
        return flows[0] if all(flow is flows[0] for flow in flows) else Flow.NEXT
    if not values:
        raise Raised
    frame.value = join(values)
    return Flow.RETURN


def _assign(machine: Machine, node: ast.Assign, frame: Frame) -> Flow:
    value = machine.evaluate(node.value, frame)
    for target in node.targets:
        assign(machine, target, value, frame)
    return Flow.NEXT


def _annotated(machine: Machine, node: ast.AnnAssign, frame: Frame) -> Flow:
    if node.value is not None:
        assign(machine, node.target, machine.evaluate(node.value, frame), frame)
    return Flow.NEXT


def _augmented(machine: Machine, node: ast.AugAssign, frame: Frame) -> Flow:
    held = machine.evaluate(node.target, frame)
    value = machine.evaluate(node.value, frame)
    if isinstance(held, list) and isinstance(node.op, ast.Add):
        more = items_of(machine, value)
        machine.heap.write(held)
        held.extend([MORE] if more is None else more)
        machine.budget.step(len(more or ()))
        return Flow.NEXT
    if isinstance(held, ModuleValue) and held.dotted in CONTAINERS:
        machine.call(NativeMethod(held, "extend", held.dotted), Arguments([value]), node, frame)
        return Flow.NEXT
    assign(machine, node.target, binary(machine, node.op, held, value), frame)
    return Flow.NEXT


def _expression(machine: Machine, node: ast.Expr, frame: Frame) -> Flow:
    if not isinstance(node.value, ast.Constant):
        machine.evaluate(node.value, frame)
    return Flow.NEXT


def _return(machine: Machine, node: ast.Return, frame: Frame) -> Flow:
    frame.value = machine.evaluate(node.value, frame) if node.value is not None else None
    return Flow.RETURN


def _if(machine: Machine, node: ast.If, frame: Frame) -> Flow:
    known = truth(machine.evaluate(node.test, frame))
    if known is not None:
        return execute(machine, node.body if known else node.orelse, frame)
    return either(
        machine,
        frame,
        (lambda: execute(machine, node.body, frame), lambda: execute(machine, node.orelse, frame)),
    )


def _for(machine: Machine, node: ast.For | ast.AsyncFor, frame: Frame) -> Flow:
    items = items_of(machine, machine.evaluate(node.iter, frame))
    for item in [MORE] if items is None else items:
        if item is MORE:
            flow = either(machine, frame, (lambda: _pass_with_unknown(machine, node, frame), lambda: Flow.NEXT))
        else:
            machine.budget.step()
            assign(machine, node.target, item, frame)
            flow = execute(machine, node.body, frame)
        if flow is Flow.RETURN:
            return flow
        if flow is Flow.BREAK:
            return Flow.NEXT
    return execute(machine, node.orelse, frame)


def _pass_with_unknown(machine: Machine, node: ast.For | ast.AsyncFor, frame: Frame) -> Flow:
    assign(machine, node.target, Unknown("an item of a sequence that is not known"), frame)
    return _single_pass(machine, node, frame)


def _single_pass(machine: Machine, node: ast.For | ast.AsyncFor | ast.While, frame: Frame) -> Flow:
    """The body of a loop once, for all the times that it may run."""
    flow = execute(machine, node.body, frame)
    return flow if flow is Flow.RETURN else Flow.NEXT


def _while(machine: Machine, node: ast.While, frame: Frame) -> Flow:
    for _ in range(_MOST_WHILE):
        machine.budget.step()
        known = truth(machine.evaluate(node.test, frame))
        if known is None:
            break
        if not known:
            return execute(machine, node.orelse, frame)
        flow = execute(machine, node.body, frame)
        if flow is Flow.RETURN:
            return flow
        if flow is Flow.BREAK:
            return Flow.NEXT
    return either(machine, frame, (lambda: _single_pass(machine, node, frame), lambda: Flow.NEXT))


def _with(machine: Machine, node: ast.With | ast.AsyncWith, frame: Frame) -> Flow:
    for item in node.items:
        value = machine.evaluate(item.context_expr, frame)
        if item.optional_vars is not None:
            assign(machine, item.optional_vars, value, frame)
    return execute(machine, node.body, frame)


def _try(machine: Machine, node: ast.Try, frame: Frame) -> Flow:
    """The body, with its handlers only where it is sure to raise."""
    try:
        flow = execute(machine, node.body, frame)
        if flow is Flow.NEXT:
            flow = execute(machine, node.orelse, frame)
    except Raised:
        if not node.handlers:
            execute(machine, node.finalbody, frame)
            raise
        handler = node.handlers[0]
        if handler.name:
            bind_name(machine, handler.name, Unknown("an exception"), frame)
        flow = execute(machine, handler.body, frame)
    last = execute(machine, node.finalbody, frame)
    return flow if last is Flow.NEXT else last


def _raise(_machine: Machine, _node: ast.Raise, _frame: Frame) -> Flow:
    raise Raised


def _assert(machine: Machine, node: ast.Assert, frame: Frame) -> Flow:
    if truth(machine.evaluate(node.test, frame)) is False:
        raise Raised
    return Flow.NEXT


def _delete(machine: Machine, node: ast.Delete, frame: Frame) -> Flow:
    for target in node.targets:
        if isinstance(target, ast.Name):
            machine.heap.write(frame.names)
            frame.names.pop(target.id, None)
        elif isinstance(target, ast.Attribute):
            delete_attribute(machine, machine.evaluate(target.value, frame), target.attr)
        elif isinstance(target, ast.Subscript):
            delete_item(machine, machine.evaluate(target.value, frame), machine.evaluate(target.slice, frame))
    return Flow.NEXT


def _outer(_machine: Machine, node: ast.Global | ast.Nonlocal, frame: Frame) -> Flow:
    frame.outer |= frozenset(node.names)
    return Flow.NEXT


def _import(machine: Machine, node: ast.Import, frame: Frame) -> Flow:
    for alias in node.names:
        if alias.asname:
            bind_name(machine, alias.asname, ImportValue(alias.name, 0), frame)
        else:
            head = alias.name.partition(".")[0]
            bind_name(machine, head, ImportValue(head, 0), frame)
    return Flow.NEXT


def _import_from(machine: Machine, node: ast.ImportFrom, frame: Frame) -> Flow:
    module = node.module or ""
    for alias in node.names:
        if alias.name != "*":
            bind_name(machine, alias.asname or alias.name, ImportValue(module, node.level, alias.name), frame)
            continue
        found = machine.imported(ImportValue(module, node.level), frame.path)
        names = getattr(found, "frame", None)
        if isinstance(names, Frame):
            machine.heap.write(frame.names)
            public = {
                name: machine.lookup(name, names) if isinstance(value, ImportValue) else value
                for name, value in list(names.names.items())
                if not name.startswith("_")
            }
            frame.names.update(public)
            frame.star_imports.extend(names.star_imports)
        elif isinstance(found, LibraryValue):
            frame.file.star_imports.append(found.dotted)
    return Flow.NEXT


def _function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> Flow:
    define_function(machine, node, frame)
    return Flow.NEXT


def _class(machine: Machine, node: ast.ClassDef, frame: Frame) -> Flow:
    define_class(machine, node, frame)
    return Flow.NEXT


def _match(machine: Machine, node: ast.Match, frame: Frame) -> Flow:
    """The first case that is sure to fit; all that may fit where that cannot be told."""
    subject = machine.evaluate(node.subject, frame)
    possible: list[ast.match_case] = []
    for case in node.cases:
        fits = _fits(machine, case.pattern, subject, frame) if case.guard is None else None
        if fits is False:
            continue
        possible.append(case)
        if fits:
            break
    else:
        return either(machine, frame, [*(_body(machine, case, frame) for case in possible), lambda: Flow.NEXT])
    branches = [_body(machine, case, frame) for case in possible]
    return branches[0]() if len(branches) == 1 else either(machine, frame, branches)


def _body(machine: Machine, case: ast.match_case, frame: Frame) -> Callable[[], Flow]:
    return lambda: execute(machine, case.body, frame)


def _fits(machine: Machine, pattern: ast.pattern, subject: Value, frame: Frame) -> bool | None:
    match pattern:
        case ast.MatchAs(pattern=None, name=name):
            if name is not None:
                bind_name(machine, name, subject, frame)
            return True
        case ast.MatchValue(value=value):
            return truth(compare(ast.Eq(), subject, machine.evaluate(value, frame)))
        case ast.MatchSingleton(value=value):
            return None if isinstance(subject, Unknown) else subject is value
        case ast.MatchOr(patterns=patterns):
            found = [_fits(machine, one, subject, frame) for one in patterns]
            return True if True in found else None if None in found else False
        case _:
            return None


_RUN: Mapping[type[ast.stmt], Callable[..., Flow]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Global: _outer,
    ast.Nonlocal: _outer,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Match: _match,
    ast.Break: lambda _machine, _node, _frame: Flow.BREAK,
    ast.Continue: lambda _machine, _node, _frame: Flow.CONTINUE,
}
