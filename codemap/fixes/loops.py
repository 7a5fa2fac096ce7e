"""Python loops over what a batch holds: which loop runs a place, and whether its rounds are independent."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .bindings import FUNCTIONS
from .outline import COMPREHENSIONS, LOOPS, Outline, find, last_name
from .scene import Frame, Scene

_NOT_A_BATCH = re.compile(
    r"(loader|dataset|epoch|step|layer|block|module|stage|param|buffer|state_dict|optim|hook|callback|worker|file|path)",
    re.I,
)
"""What a loop over something else than a batch goes through."""
_TRAINS = frozenset({"backward", "step", "zero_grad", "load_state_dict", "save"})
_JOINS = ("cat", "concat", "hstack", "vstack", "pad", "append")
_LISTS = frozenset({"split", "chunk", "unbind", "list", "tolist", "sorted", "zip", "tensor_split", "meshgrid", "map"})
"""Calls that give several things."""
_HOLDERS = frozenset({"ModuleList", "Sequential", "ModuleDict", "ParameterList"})
"""Classes of torch that hold modules or parameters."""
_COLLECTIONS = frozenset({"List", "list", "Tuple", "tuple", "Sequence", "Iterable", "Dict", "dict", "ModuleList"})
_GROWS = frozenset({"append", "extend", "add", "update", "insert"})


@dataclass(frozen=True, slots=True)
class Loop:
    """A `for` loop or a comprehension with one generator."""

    outline: Outline
    node: ast.For | ast.ListComp | ast.GeneratorExp | ast.SetComp
    target: ast.expr
    iter: ast.expr

    @property
    def body(self) -> list[ast.AST]:
        """What runs in every round."""
        return list(self.node.body) if isinstance(self.node, ast.For) else [self.node.elt]

    @property
    def statement(self) -> ast.stmt:
        """The loop, or the statement that holds the comprehension."""
        return self.outline.statement(self.node)

    def walk(self) -> Iterator[ast.AST]:
        """All nodes of the body."""
        for part in self.body:
            yield from ast.walk(part)

    def elements(self) -> dict[str, ast.expr]:
        """Names that stand for an element, with the sequence that it comes from: through `zip` and `enumerate` too."""
        return dict(_elements(self.outline, self.target, self.iter))

    def index(self) -> str:
        """The name that counts the rounds: of `range(...)` or `enumerate(...)`; "" if none does."""
        call = self.iter
        if not isinstance(call, ast.Call):
            return ""
        name = self.outline.dotted(call.func)
        if name == "range" and isinstance(self.target, ast.Name):
            return self.target.id
        if name == "enumerate" and isinstance(self.target, ast.Tuple) and isinstance(self.target.elts[0], ast.Name):
            return self.target.elts[0].id
        return ""

    def reads(self, name: str) -> list[ast.Name]:
        """Where the body reads a name."""
        return [
            node
            for node in self.walk()
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]


def loop_at(view: Scene) -> Loop | None:
    """The innermost loop with independent rounds that runs the place, itself or through a call from its body."""
    for frame in view.frames:
        for loop in loops_round(frame):
            if is_batch(loop):
                return loop
        if any(isinstance(above, LOOPS) for one in frame.statements for above in frame.outline.ancestors(one)):
            return None  # a loop of another kind runs it: what calls that repeats the whole
    return None


def is_batch(loop: Loop) -> bool:
    """Whether a loop goes through what a batch holds, one round as good as independent of the others."""
    if _NOT_A_BATCH.search(ast.unparse(loop.iter)) or _is_fixed(loop.iter):
        return False
    elements = loop.elements()
    for node in loop.walk():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _TRAINS:
            return False
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.Break):
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in elements:
            return False  # the elements are modules or functions
    return not carried(loop)


def carried(loop: Loop) -> set[str]:
    """Names that bring a value from one round to the next: read before the round has set them.

    Sums, and lists and tensors that grow, are none: no round looks at what the ones before it gave.
    """
    if not isinstance(loop.node, ast.For):
        return set()
    own = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    found: set[str] = set()
    _follow(loop.node.body, set(own), _stored(loop.node.body), found)
    return found


def _follow(body: list[ast.stmt], known: set[str], stored: set[str], found: set[str]) -> set[str]:
    """Walk statements in order; names of `stored` read while not yet `known` are carried over. Answers what is set."""
    for statement in body:
        if _is_sum(statement):
            continue
        for node in _evaluated(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in stored - known:
                found.add(node.id)
        blocks = [getattr(statement, field, None) for field in ("body", "orelse", "finalbody")]
        ends = [
            _follow(block, set(known) | _header_names(statement), stored, found)
            for block in blocks
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt)
        ]
        if isinstance(statement, ast.If) and statement.orelse:
            known |= set.intersection(*ends)
        elif isinstance(statement, ast.With | ast.For | ast.Try):
            known |= ends[0]
        known |= _header_names(statement)
    return known


def _is_sum(statement: ast.stmt) -> bool:
    """`total += x`, `total = total + x`, `all = torch.cat([all, x])`, `ids = F.pad(ids, ...)`."""
    match statement:
        case ast.AugAssign(op=ast.Add()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=left), op=ast.Add())):
            return name == left
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[first, *_]) as call):
            parts = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
            return last_name(call.func) in _JOINS and any(last_name(part) == name for part in parts)
        case _:
            return False


def _evaluated(statement: ast.stmt) -> Iterator[ast.AST]:
    """Nodes that a statement itself evaluates, not those in its blocks."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt):
            yield from ast.walk(child)


def _header_names(statement: ast.stmt) -> set[str]:
    """Names that a statement itself sets."""
    return {node.id for node in _evaluated(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _stored(body: list[ast.stmt]) -> set[str]:
    return {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _is_fixed(node: ast.expr) -> bool:
    """A loop over numbers or things that are written down: `range(3)`, `(1, 2, 4)`, `d.items()`."""
    match node:
        case ast.Tuple() | ast.List() | ast.Set() | ast.Dict() | ast.Constant():
            return True
        case ast.Call(func=ast.Attribute(attr="items" | "keys" | "values")):
            return True
        case ast.Call(func=ast.Name(id="range"), args=args):
            return all(isinstance(arg, ast.Constant) for arg in args)
        case ast.Call(func=ast.Name(id="zip" | "enumerate" | "reversed" | "sorted"), args=args):
            return any(_is_fixed(arg) for arg in args)
        case _:
            return False


def loops_round(frame: Frame) -> Iterator[Loop]:
    """Loops round a frame's statements in the same function, innermost first; the statements' own comprehensions
    before them."""
    file = frame.outline
    for statement in frame.statements:
        if isinstance(statement, ast.For):
            yield Loop(file, statement, statement.target, statement.iter)
            continue
        for expression in (node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)):
            for node in find(expression, ast.expr):
                if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp) and len(node.generators) == 1:
                    yield Loop(file, node, node.generators[0].target, node.generators[0].iter)
    for statement in frame.statements[:1]:
        for above in file.ancestors(statement):
            if isinstance(above, FUNCTIONS):
                return
            if isinstance(above, ast.For):
                yield Loop(file, above, above.target, above.iter)


def _elements(file: Outline, target: ast.expr, source: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(source, ast.Call) and isinstance(target, ast.Tuple):
        name = file.dotted(source.func)
        if name == "zip" and len(source.args) == len(target.elts):
            for part, held in zip(target.elts, source.args, strict=True):
                yield from _elements(file, part, held)
            return
        if name == "enumerate" and len(target.elts) == 2 and source.args:
            yield from _elements(file, target.elts[1], source.args[0])
            return
    if isinstance(target, ast.Name) and not (
        isinstance(source, ast.Call) and file.dotted(source.func) in ("range", "enumerate", "zip")
    ):
        yield target.id, source


def is_list(file: Outline, node: ast.expr) -> bool:
    """Whether an expression is known to be a list of things rather than a tensor."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Dict, *COMPREHENSIONS)):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add):
        return any(isinstance(side, ast.List | ast.Tuple) for side in (node.left, node.right))
    if isinstance(node, ast.Call):
        return last_name(node.func) in _LISTS
    if isinstance(node, ast.Attribute) and last_name(node.value) == "self":
        return any(is_list(file, value) for value in _attribute_values(file, node))
    if not isinstance(node, ast.Name):
        return False
    grows = any(
        isinstance(call.func, ast.Attribute) and last_name(call.func.value) == node.id
        for name in _GROWS
        for call in file.calls(name)
        if file.function(call) is file.function(node)
    )
    bound = (one for one in file.lookup(node) if one.value is not None and one.index is None and not one.is_element)
    return grows or any(one.value is not node and one.value is not None and is_list(file, one.value) for one in bound)


def may_be_tensor(file: Outline, node: ast.expr) -> bool:
    """Whether nothing says that an expression is a collection: an annotation, or modules kept in an attribute."""
    if isinstance(node, ast.Attribute) and last_name(node.value) == "self":
        made = (value for value in _attribute_values(file, node) if isinstance(value, ast.Call))
        return not any(last_name(call.func) in _HOLDERS for call in made)
    bound = file.lookup(node) if isinstance(node, ast.Name) else []
    annotations = [one.node.annotation for one in bound if isinstance(one.node, ast.arg) and one.node.annotation]
    return not any(last_name(part) in _COLLECTIONS for one in annotations for part in find(one, ast.expr))


def _attribute_values(file: Outline, attribute: ast.Attribute) -> Iterator[ast.expr]:
    """What the class that reads `self.x` sets it to."""
    owner = file.enclosing_class(attribute)
    for node in find(owner, ast.Assign) if owner is not None else ():
        for target in node.targets:
            if (
                isinstance(target, ast.Attribute)
                and target.attr == attribute.attr
                and last_name(target.value) == "self"
            ):
                yield node.value
