"""A loop that reads values round by round: all of a tensor read at once before it, where that is all it does."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .edits import Patch
from .loops import Loop, is_list, loop_at
from .outline import Outline, find, last_name
from .rounds import free_name
from .scene import fixable, scene, searcher

_SLUG = "per-image-postprocess-loop"
_READS = frozenset({"item", "tolist", "numpy", "cpu", "nonzero", "masked_select", "unique"})
_PASSED = frozenset({"item", "tolist", "cpu", "detach", "numpy"})
"""Methods that a value goes through on its way to Python and that a list of numbers does without."""
_WORKERS = ("post", "decode", "box", "keypoint", "contour", "one_", "single")
"""In names of functions that take one result apart."""
_NUMBERS = ("float", "int", "bool", "round")
_TENSOR_METHODS = frozenset(
    {"softmax", "sigmoid", "argmax", "amax", "amin", "sum", "mean", "view", "reshape", "flatten", "permute", "squeeze"}
    | {"exp", "log", "clamp", "abs", "float", "long", "int", "half", "double", "detach", "cpu", "cuda", "gather", "mul"}
)


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    loop = loop_at(view) if view is not None else None
    if loop is None or not _reads(loop):
        return None
    place = loop.outline.location(loop.statement, case.location)
    if (fix := _read_at_once(loop)) is not None:
        return Confirmation(place, (fix,))
    return Confirmation(place, message=_by_hand(loop))


def _reads(loop: Loop) -> bool:
    """Whether a round holds something that can read a tensor's value."""
    file = loop.outline
    listed = {name for name, source in loop.elements().items() if _is_numbers(file, source)}
    made = {node.id for node in loop.walk() if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    held = (made | set(loop.elements())) - listed

    def may_be_tensor(node: ast.expr) -> bool:
        """Whether the value of an expression may come from a tensor: from an element, from what the round made."""
        names = [one for one in find(node, ast.Name) if one.id not in listed]
        indexed = [one.value for one in find(node, ast.Subscript) if isinstance(one.value, ast.Name)]
        return any(one.id in held for one in names) or any(not _is_numbers(file, one) for one in indexed)

    for node in loop.walk():
        match node:
            case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in _READS:
                if may_be_tensor(value):
                    return True
            case ast.Call(func=ast.Name(id=name), args=[value, *_]) if name in _NUMBERS:
                if may_be_tensor(value):
                    return True
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
                if may_be_tensor(test):
                    return True
            case ast.Subscript(slice=ast.Compare()):
                return True
            case ast.Subscript(slice=ast.Name(id=name)) if name in made:
                return True
            case ast.Call() if any(word in last_name(node.func) for word in _WORKERS):
                return True
            case _:
                pass
    return False


def _by_hand(loop: Loop) -> str:
    """Why there is no fix, and what to do."""
    steering = next((node for node in loop.walk() if isinstance(node, ast.If | ast.While | ast.IfExp)), None)
    how = "do all rounds as one tensor, and read the result with one .tolist() behind it"
    if steering is not None:
        line = f"line {steering.lineno} steers by the values read, so it takes a rewrite"
        return f"{line}: {how}, torch.where for the branch"
    return f"the rounds compute between the reads, so it takes a rewrite: {how}"


def _read_at_once(loop: Loop) -> Fix | None:
    """Read whole tensors before the loop where its rounds only read their elements."""
    file = loop.outline
    patch = Patch(file)
    elements = _read_elements(loop, patch)
    indexed = _read_indexed(loop, patch) if isinstance(loop.node, ast.For) else []
    sources = [*elements, *indexed]
    if not sources:
        return None
    names = ", ".join(dict.fromkeys(file.segment(source) for source in sources))
    safety = Safety.SAFE if all(_is_tensor(file, source) for source in sources) else Safety.UNSAFE
    return Fix(_SLUG, f"Read {names} once, as a list", safety, patch.edits())


def _read_elements(loop: Loop, patch: Patch) -> list[ast.expr]:
    """`for s in scores: ... s.item()` becomes `for s in scores.tolist(): ... s`."""
    file = loop.outline
    found: list[tuple[ast.expr, list[tuple[ast.Name, ast.expr]]]] = []
    for name, source in loop.elements().items():
        reads = [(node, read) for node in loop.reads(name) if (read := _reading(file, node)) is not None]
        is_read_only = reads and len(reads) == len(loop.reads(name)) and not _is_set(loop, name)
        if is_read_only and _may_be_listed(loop, source):
            found.append((source, reads))
    # `int(s)` and `int(s[0])` say nothing of what s is; `s.item()`, here or beside it, does.
    is_told = any(isinstance(read, ast.Call) for _, reads in found for _, read in reads)
    listed = [(source, reads) for source, reads in found if is_told or _is_tensor(file, source)]
    for source, reads in listed:
        for node, read in reads:
            _unwrap(patch, read, node)
        patch.insert(file.span(source)[1], ".tolist()")
    return [source for source, _ in listed]


def _read_indexed(loop: Loop, patch: Patch) -> list[ast.expr]:
    """`for i in range(n): ... scores[i].item()` reads from a list made before the loop."""
    file, index = loop.outline, loop.index()
    if not index:
        return []
    found: dict[str, list[tuple[ast.Name, ast.expr, ast.expr]]] = {}
    refused: set[str] = set()
    for node in loop.walk():
        if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)) or node.id == index:
            continue
        parent = file.parents[node]
        if not (isinstance(parent, ast.Subscript) and parent.value is node and _plain_index(parent.slice, index)):
            refused.add(node.id)
            continue
        read = _reading(file, parent)
        if read is None:
            refused.add(node.id)
        else:
            found.setdefault(node.id, []).append((node, parent, read))
    sources = []
    for name, reads in sorted(found.items(), key=lambda held: file.span(held[1][0][0])):
        if name in refused or _is_set(loop, name) or not _may_be_listed(loop, reads[0][0]):
            continue
        listed = free_name(file, f"{name}_list")
        for node, subscript, read in reads:
            assert isinstance(subscript, ast.Subscript)
            _unwrap(patch, read, subscript)
            _list_index(patch, subscript)
            patch.replace(node, listed)
        line = f"{listed} = {name}.tolist()"
        start = file.line_starts[loop.statement.lineno - 1]
        patch.insert(start, file.indentation(loop.statement) + line + file.newline)
        sources.append(reads[0][0])
    return sources


def _reading(file: Outline, node: ast.expr) -> ast.expr | None:
    """The expression that gives an element's value to Python: `e.item()`, `e.cpu().tolist()`, `e[0].item()`; `e` itself
    inside `float(e)` and `int(e)`. None if the element is used as a tensor."""
    current, is_read = node, False
    while True:
        parent = file.parents[current]
        if isinstance(parent, ast.Subscript) and parent.value is current and _is_number(parent.slice) and not is_read:
            current = parent
            continue
        method = parent if isinstance(parent, ast.Attribute) and parent.attr in _PASSED else None
        call = file.parents[method] if method is not None else None
        if isinstance(call, ast.Call) and call.func is method and not call.args and not call.keywords:
            assert method is not None
            is_read = is_read or method.attr in ("item", "tolist")
            current = call
            continue
        break
    if is_read:
        return current
    match parent:
        case ast.Call(func=ast.Name(id="float" | "int" | "bool"), args=[only]) if only is current:
            return None if isinstance(current, ast.Call) else current
        case _:
            return None


def _unwrap(patch: Patch, read: ast.expr, node: ast.expr) -> None:
    """Drop the methods between an element and its value; subscripts stay."""
    file = patch.outline
    current: ast.expr = node
    while current is not read:
        parent = file.parents[current]
        if isinstance(parent, ast.Attribute):
            call = file.parents[parent]
            assert isinstance(call, ast.Call)
            patch.replace_span(file.span(current)[1], file.span(call)[1], "")
            current = call
        else:
            assert isinstance(parent, ast.Subscript)
            current = parent


def _plain_index(index: ast.expr, name: str) -> bool:
    """`[i]`, `[i, 0]`, `[i, j]`: numbers and names, the loop's own name among them."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    plain = all(isinstance(part, ast.Name) or _is_number(part) for part in parts)
    return plain and isinstance(parts[0], ast.Name) and parts[0].id == name


def _list_index(patch: Patch, subscript: ast.Subscript) -> None:
    """`[i, j]` of a tensor is `[i][j]` of a list."""
    if isinstance(subscript.slice, ast.Tuple):
        parts = "][".join(patch.outline.segment(part) for part in subscript.slice.elts)
        patch.replace(subscript.slice, parts)


def _may_be_listed(loop: Loop, source: ast.expr) -> bool:
    return isinstance(source, ast.Name | ast.Attribute | ast.Subscript | ast.Call) and not is_list(loop.outline, source)


def _is_set(loop: Loop, name: str) -> bool:
    """Whether the body gives a name another value, or writes into what it stands for."""
    for node in loop.walk():
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        is_written = isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store)
        if is_written and any(one.id == name for one in find(node, ast.Name)):
            return True
    return False


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int)


def _is_numbers(file: Outline, node: ast.expr) -> bool:
    """Whether an expression is a list of Python numbers: what `.tolist()` gave."""
    if isinstance(node, ast.Name):
        bound = file.lookup(node)
        return bool(bound) and all(one.value is not None and _is_numbers(file, one.value) for one in bound)
    return isinstance(node, ast.Call) and last_name(node.func) in ("tolist", "range")


def _is_tensor(file: Outline, node: ast.expr, depth: int = 0) -> bool:
    """Whether an expression is known to be a tensor of numbers: what a torch function or a tensor's method gives."""
    if depth > 6:
        return False
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) if name in _TENSOR_METHODS:
            return True
        case ast.BinOp(left=left, right=right):
            return _is_tensor(file, left, depth + 1) or _is_tensor(file, right, depth + 1)
        case ast.Call():
            dotted = file.dotted(node.func)
            return dotted.startswith("torch.") and not dotted.endswith(("split", "chunk", "unbind", "meshgrid", "load"))
        case ast.Name():
            bound = file.lookup(node)
            return bool(bound) and all(
                one.value is not None and not one.is_element and _gives_tensor(file, one.value, one.index, depth)
                for one in bound
            )
        case _:
            return False


def _gives_tensor(file: Outline, value: ast.expr, index: int | None, depth: int) -> bool:
    if index is None:
        return _is_tensor(file, value, depth + 1)
    # `values, places = x.max(dim=1)`, `x.topk(k)`, `x.sort()`
    return isinstance(value, ast.Call) and last_name(value.func) in ("max", "min", "topk", "sort", "kthvalue")


FIXER = Fixer(
    _SLUG,
    _confirm,
    fixable(searcher(_confirm, ("for ",))),
    required=True,
    cure=Cure(re.compile(r"\.tolist\(\)")),
)
