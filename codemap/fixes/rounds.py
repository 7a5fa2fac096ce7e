"""What one round of a loop computes, from which tensors' slices, and where its results go."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .loops import Loop, is_list, may_be_tensor
from .outline import Outline, find, last_name

_TO_PYTHON = frozenset(
    {"item", "tolist", "cpu", "numpy", "nonzero", "argwhere", "unique", "masked_select", "bool", "any", "all", "print"}
    | {
        "float",
        "int",
        "len",
        "append",
        "extend",
        "to",
        "cuda",
        "dropout",
        "rand",
        "randn",
        "randint",
        "randperm",
        "interpolate",
    }
)
"""Calls that `vmap` cannot take, or that mean something else for a batch."""


class Refused(Exception):
    """The loop is over a batch, but not one that can be rewritten by rule; the message says why."""


@dataclass(slots=True)
class Round:
    """What one round does, taken apart."""

    loop: Loop
    before: list[ast.stmt]
    """Statements that the result is made of; empty where it is one expression."""
    result: ast.expr
    inputs: dict[str, str] = field(default_factory=dict)
    """Parameter of one round -> text of the tensor that it is a slice of, in order of the text."""
    cuts: list[tuple[ast.expr, str]] = field(default_factory=list)
    """Expressions of the body, each with the text that stands for it in one round."""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a loop's results go: what to replace, how the batched result is written there."""

    replaced: ast.expr | ast.stmt
    template: str
    """With `{}` for the batched results."""
    deleted: tuple[ast.stmt, ...] = ()


def take_apart(loop: Loop) -> tuple[Round, Sink]:
    """What a round computes, and where its results go."""
    if not isinstance(loop.node, ast.For):
        return Round(loop, [], loop.node.elt), _stacked_comprehension(loop)
    *before, last = loop.node.body
    if any(_is_bound_outside(loop, one) for one in before):
        raise Refused(by_hand(loop))  # it adds up, or what it sets is read behind the loop
    if loop.node.orelse or not all(isinstance(one, ast.Assign | ast.AnnAssign) and _is_local(one) for one in before):
        raise Refused(by_hand(loop))
    match last:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[result])):
            return Round(loop, before, result), _stacked_list(loop, name)
        case ast.AugAssign(target=ast.Name() as target, op=ast.Add(), value=result):
            return Round(loop, before, result), Sink(loop.node, f"{target.id} = {target.id} + {{}}.sum(0)")
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=result)
        ) if name == left:
            return Round(loop, before, result), Sink(loop.node, f"{name} = {name} + {{}}.sum(0)")
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name(id=name) as out, slice=ast.Name(id=index))], value=result
        ) if index == loop.index() and _is_made_by_torch(loop.outline, out):
            return Round(loop, before, result), Sink(loop.node, f"{name}[:] = {{}}")
        case _:
            raise Refused(by_hand(loop))


def _is_made_by_torch(file: Outline, node: ast.expr) -> bool:
    """Whether a name is set to what torch or a tensor's `new_...` gives: not to an array of numpy."""
    bound = file.lookup(node) if isinstance(node, ast.Name) else []
    calls = [one.value for one in bound if isinstance(one.value, ast.Call)]
    return bool(calls) and all(
        file.dotted(call.func).startswith("torch.") or last_name(call.func).startswith("new_") for call in calls
    )


def _stacked_comprehension(loop: Loop) -> Sink:
    """`torch.stack([... for ...])`, along the first dimension."""
    node = loop.node
    assert not isinstance(node, ast.For)
    call = loop.outline.parents[node]
    if isinstance(node, ast.SetComp) or node.generators[0].ifs or not _is_stack(loop.outline, call, node):
        raise Refused(by_hand(loop))
    assert isinstance(call, ast.Call)
    return Sink(call, "{}")


def _stacked_list(loop: Loop, name: str) -> Sink:
    """`out = []`, the loop, and behind it `torch.stack(out)`, the list used nowhere else."""
    file = loop.outline
    function = file.function(loop.node)
    uses = [node for node in find(function, ast.Name) if node.id == name]
    made = [one for one in uses if isinstance(one.ctx, ast.Store)]
    reads = [one for one in uses if isinstance(one.ctx, ast.Load) and one.lineno > (loop.node.end_lineno or 0)]
    if len(made) != 1 or len(reads) != 1 or len(uses) != 3:
        raise Refused(by_hand(loop))
    start = file.statement(made[0])
    stack = file.parents[reads[0]]
    is_empty = isinstance(start, ast.Assign) and isinstance(start.value, ast.List) and not start.value.elts
    if not is_empty or start not in file.block(loop.statement) or not _is_stack(file, stack, reads[0]):
        raise Refused(by_hand(loop))
    assert isinstance(stack, ast.Call)
    return Sink(stack, "{}", (start, loop.statement))


def _is_stack(file: Outline, call: ast.AST, held: ast.expr) -> bool:
    if not isinstance(call, ast.Call) or file.dotted(call.func) != "torch.stack" or call.args[:1] != [held]:
        return False
    rest = [*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg == "dim")]
    return len(call.keywords) + len(call.args) - 1 == len(rest) and all(
        isinstance(one, ast.Constant) and one.value == 0 for one in rest
    )


def find_inputs(one: Round) -> None:
    """Fill in which tensors a round takes its slices from."""
    loop, file = one.loop, one.loop.outline
    index, elements = loop.index(), loop.elements()
    nodes = [node for part in (*one.before, one.result) for node in ast.walk(part)]
    for node in sorted((n for n in nodes if isinstance(n, ast.Name)), key=lambda n: (n.lineno, n.col_offset)):
        if not isinstance(node.ctx, ast.Load):
            continue
        if node.id in elements:
            source = elements[node.id]
            if is_list(file, source) or not may_be_tensor(file, source):
                raise Refused(by_hand(loop))
            one.inputs[node.id] = file.segment(source)
        elif node.id == index:
            _cut(one, node)
    is_made = isinstance(one.result, ast.List | ast.Tuple | ast.Dict)
    if is_made or not one.inputs or not _goes_through_all(loop, one):
        raise Refused(by_hand(loop))
    for node in nodes:
        _check(loop, node)
        if isinstance(node, ast.Slice) and any(name.id in one.inputs for name in find(node, ast.Name)):
            raise Refused(by_hand(loop))  # the result's size depends on the sample's values
    if not any(isinstance(node, ast.Call | ast.BinOp) for node in nodes):
        raise Refused(by_hand(loop))  # values are only passed on


def _cut(one: Round, index: ast.Name) -> None:
    """`t[i]` and `t[i, ...]`: what the round sees of `t`."""
    file = one.loop.outline
    parent = file.parents[index]
    rest: list[ast.expr] = []
    if isinstance(parent, ast.Tuple) and parent.elts[0] is index:
        rest, parent = parent.elts[1:], file.parents[parent]
    if not (isinstance(parent, ast.Subscript) and isinstance(parent.value, ast.Name | ast.Attribute)):
        raise Refused(by_hand(one.loop))
    if isinstance(parent.ctx, ast.Store) or is_list(file, parent.value) or not may_be_tensor(file, parent.value):
        raise Refused(by_hand(one.loop))
    source = file.segment(parent.value)
    name = next((known for known, text in one.inputs.items() if text == source), None)
    if name is None:
        name = free_name(file, last_name(parent.value) + "_" + index.id)
        one.inputs[name] = source
    one.cuts.append((parent, f"{name}[{', '.join(file.segment(part) for part in rest)}]" if rest else name))


def _goes_through_all(loop: Loop, one: Round) -> bool:
    """Whether the rounds are all there is of the tensors: elements, or `range` of a length and no other start."""
    call = loop.iter
    if not (isinstance(call, ast.Call) and last_name(call.func) == "range"):
        return True
    if len(call.args) != 1:
        return False
    match call.args[0]:
        case ast.Call(func=ast.Name(id="len"), args=[held]):
            return loop.outline.segment(held) in one.inputs.values()
        case ast.Subscript(value=ast.Attribute(attr="shape", value=held), slice=ast.Constant(value=0)):
            return loop.outline.segment(held) in one.inputs.values()
        case ast.Call(func=ast.Attribute(attr="size", value=held), args=[ast.Constant(value=0)]):
            return loop.outline.segment(held) in one.inputs.values()
        case ast.Name() as name:
            return any(_is_first_size(binding.value, binding.index) for binding in loop.outline.lookup(name))
        case _:
            return False


def _is_first_size(value: ast.expr | None, index: int | None) -> bool:
    """`b, c, h, w = x.shape`, `b = x.shape[0]`, `n = len(x)`, `b = x.size(0)`."""
    match value:
        case ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size"), args=[]):
            return index == 0
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=0)):
            return index is None
        case ast.Call(func=ast.Attribute(attr="size"), args=[ast.Constant(value=0)]):
            return index is None
        case ast.Call(func=ast.Name(id="len")):
            return index is None
        case _:
            return False


def _check(loop: Loop, node: ast.AST) -> None:
    """Raise where something of a round can't run for all samples at once."""
    is_bad = isinstance(node, ast.Lambda | ast.IfExp | ast.Compare | ast.NamedExpr | ast.JoinedStr | ast.BoolOp)
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        dotted = loop.outline.dotted(node.func)
        # What another function does, or a library's that is not torch, is not seen here.
        is_foreign = isinstance(node.func, ast.Name) and not dotted.startswith("torch.")
        is_foreign = is_foreign or (
            dotted.partition(".")[0] in loop.outline.aliases.values() and not dotted.startswith("torch.")
        )
        is_bad = is_foreign or name in _TO_PYTHON or (name.endswith("_") and not name.startswith("_"))
    if is_bad:
        raise Refused(by_hand(loop))


def by_hand(loop: Loop) -> str:
    """Why there is no fix, and what to do."""
    if any(isinstance(node, ast.For | ast.comprehension) for node in loop.walk()) or any(
        isinstance(above, ast.For) for above in loop.outline.ancestors(loop.node)
    ):
        return (
            "nested loops take a rewrite: one arange per axis, broadcast against each other, gives all rounds at once"
        )
    held = [loop.iter, *loop.elements().values()]
    if any(is_list(loop.outline, one) or last_name(one) in ("images", "imgs", "crops", "targets") for one in held):
        return (
            "samples of different sizes take a rewrite: lay them end to end and build indices with repeat_interleave, "
            "or pad them"
        )
    return (
        "the rounds take a rewrite: give the operators the batch as their first dimension, and masks for the branches"
    )


def _is_local(statement: ast.Assign | ast.AnnAssign) -> bool:
    """Whether a statement of the body only sets names of its own."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    nodes = [node for target in targets for node in ast.walk(target)]
    return all(isinstance(node, ast.Name | ast.Tuple | ast.expr_context) for node in nodes)


def _is_bound_outside(loop: Loop, statement: ast.stmt) -> bool:
    """Whether a statement of the body sets a name that the function uses outside of the loop too."""
    file = loop.outline
    names = {node.id for node in find(statement, ast.Name) if isinstance(node.ctx, ast.Store)}
    inside = set(ast.walk(loop.node))
    return any(node.id in names and node not in inside for node in find(file.function(loop.node), ast.Name))


def free_name(file: Outline, wanted: str) -> str:
    """`wanted`, with underscores behind it while the file uses that name."""
    taken = {node.id for node in find(file.tree, ast.Name)}
    while wanted in taken:
        wanted += "_"
    return wanted
