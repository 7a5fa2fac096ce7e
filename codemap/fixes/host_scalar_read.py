"""A tensor's value read on the host in every step: keep running sums on the device and read them once, at the end."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .bindings import walk_scope
from .edits import Patch
from .outline import LOOPS, Outline, find, last_name
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher

_SLUG = "host-scalar-read"
_METHODS = (
    "item",
    "tolist",
    "cpu",
    "numpy",
    "__bool__",
    "__float__",
    "__int__",
    "nonzero",
    "is_nonzero",
    "equal",
    "allclose",
)
_BUILTINS = ("float", "int", "bool", "print", "str", "min", "max", "len", "repr", "round", "abs", "any", "all", "sum")
_CHECKS = ("torch.isnan", "torch.isfinite", "torch.isinf", "torch.any", "torch.all", "torch.equal", "torch.allclose")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu or not _reads_value(view):
        return None
    if not case.callers and all(_is_constructor(view.here.outline, one) for one in view.here.statements):
        return None  # reads once, and mostly on the host
    for statement in view.here.statements:
        fix = _accumulated(view.resolver, view.here.outline, statement) or _appended(view.here.outline, statement)
        if fix is not None:
            return Confirmation(view.here.outline.location(statement, case.location), (fix,))
    return Confirmation(case.location)


def _is_constructor(file: Outline, statement: ast.stmt) -> bool:
    return getattr(file.function(statement), "name", "") == "__init__"


def _reads_value(view: Scene) -> bool:
    """Whether the statements hold something that can make the host wait for a value."""
    file = view.here.outline
    for value in view.here.values():
        node = value.node
        if isinstance(node, ast.FormattedValue):
            return True
        if isinstance(node, ast.Call) and (
            (isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS)
            or (isinstance(node.func, ast.Name) and node.func.id in _BUILTINS)
            or file.dotted(node.func) in _CHECKS
        ):
            return True
        if isinstance(node, ast.IfExp | ast.BoolOp | ast.Slice):
            return True
    return any(isinstance(statement, ast.If | ast.While | ast.Assert) for statement in view.here.statements)


def _accumulated(resolver: Resolver, file: Outline, statement: ast.stmt) -> Fix | None:
    """`total += loss.item() * n` in a loop, `total` a number before it and read only behind it."""
    name, added = _addition(statement)
    if name is None or added is None:
        return None
    items = [call for call in find(added, ast.Call) if _is_item(call)]
    loop = _loop_of_sum(file, statement, name)
    if len(items) != 1 or loop is None or not _only_scaled(added, items[0]):
        return None
    start = _start_value(file, loop, name)
    read = items[0].func.value if isinstance(items[0].func, ast.Attribute) else None
    if start is None or read is None:
        return None
    kept = _kept_on_device(Value(file, read), is_float=isinstance(start, float))
    if kept is None:
        return None
    patch = Patch(file)
    patch.replace_span(
        file.span(read)[1], file.span(items[0])[1], file.text[file.span(read)[1] : _dot(file, items[0])] + kept
    )
    torch = _torch_name(file)
    if torch is None:
        return None
    patch.insert_line_after(loop, f"{name} = {torch}.as_tensor({name}).item()")
    return Fix(_SLUG, f"Sum {name} on the device and read it once, behind the loop", Safety.SAFE, patch.edits())


def _appended(file: Outline, statement: ast.stmt) -> Fix | None:
    """`losses.append(loss.item())` in a loop, `losses` a fresh list before it and read only behind it."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "append"
        and isinstance(call.func.value, ast.Name)
        and len(call.args) == 1
        and isinstance(item := call.args[0], ast.Call)
        and _is_item(item)
        and isinstance(item.func, ast.Attribute)
    ):
        return None
    name, torch = call.func.value.id, _torch_name(file)
    loop = _loop_of_sum(file, statement, name)
    if loop is None or torch is None or not _starts_empty(file, loop, name):
        return None
    patch = Patch(file)
    patch.replace_span(_dot(file, item), file.span(item)[1], "detach()")
    patch.insert_line_after(loop, f"{name} = {torch}.stack({name}).tolist() if {name} else {name}")
    return Fix(_SLUG, f"Keep {name} on the device and read them once, behind the loop", Safety.SAFE, patch.edits())


def _addition(statement: ast.stmt) -> tuple[str | None, ast.expr | None]:
    match statement:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
            return name, value
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=value)
        ) if left == name:
            return name, value
        case _:
            return None, None


def _is_item(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "item" and not call.args and not call.keywords


def _dot(file: Outline, item: ast.Call) -> int:
    """Offset of the method's name in `x.item()`."""
    assert isinstance(item.func, ast.Attribute)
    return file.span(item.func)[1] - len(item.func.attr)


def _only_scaled(added: ast.expr, item: ast.Call) -> bool:
    """Whether the value read is only multiplied or divided: `loss.item() * len(x)`."""
    node = added
    while node is not item:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div):
            return False
        left_holds = any(child is item for child in ast.walk(node.left))
        if isinstance(node.op, ast.Div) and not left_holds:
            return False
        node = node.left if left_holds else node.right
    return True


def _loop_of_sum(file: Outline, statement: ast.stmt, name: str) -> ast.stmt | None:
    """The outermost loop that the sum is taken over: inside it, nothing reads or sets the name but the statement
    itself and formatted prints. None if something does, or if another function may."""
    function = file.function(statement)
    loops = [
        above for above in file.ancestors(statement) if isinstance(above, LOOPS) and file.function(above) is function
    ]
    stores = [
        binding.node
        for binding in file.bindings(function, name)
        if isinstance(binding.node, ast.stmt) and binding.node is not statement
    ]
    found: ast.stmt | None = None
    for loop in loops:
        if any(store in ast.walk(loop) for store in stores):
            break
        found = loop
    if found is None or not stores or (isinstance(function, ast.Module) and _is_global(file, name)):
        return None
    inside = set(map(id, ast.walk(found)))
    own = set(map(id, ast.walk(statement)))
    for node in find(function, ast.Name):
        if node.id != name or id(node) in own:
            continue
        if file.function(node) is not function or (id(node) in inside and not _is_formatted(file, node)):
            return None
    if any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in walk_scope(function)):
        return None
    return found


def _is_global(file: Outline, name: str) -> bool:
    return any(name in node.names for node in find(file.tree, ast.Global)) or any(
        node.id == name and not isinstance(file.function(node), ast.Module) for node in find(file.tree, ast.Name)
    )


def _is_formatted(file: Outline, node: ast.Name) -> bool:
    """Whether a read stands in an f-string field with a number format, which a 0-d tensor prints alike."""
    for above in file.ancestors(node):
        if isinstance(above, ast.FormattedValue):
            spec = ast.unparse(above.format_spec) if above.format_spec is not None else ""
            return spec.rstrip("'\"").endswith(("f", "e", "g", "%"))
        if isinstance(above, ast.stmt) or (isinstance(above, ast.Call) and above.func is not node):
            return False
    return False


def _start_value(file: Outline, loop: ast.stmt, name: str) -> float | int | None:
    """The number that a name is set to before the loop, in the loop's own block."""
    value = _value_before(file, loop, name)
    number = value.value if isinstance(value, ast.Constant) else None
    return number if isinstance(number, int | float) and not isinstance(number, bool) else None


def _starts_empty(file: Outline, loop: ast.stmt, name: str) -> bool:
    value = _value_before(file, loop, name)
    return isinstance(value, ast.List) and not value.elts


def _value_before(file: Outline, loop: ast.stmt, name: str) -> ast.expr | None:
    """What the last statement before the loop that names it, in the same block, binds a name to."""
    block = file.block(loop)
    for earlier in reversed(block[: block.index(loop)]):
        if any(node.id == name for node in find(earlier, ast.Name)):
            bound = (one for one in file.bindings(file.function(loop), name) if one.node is earlier)
            return next((one.value for one in bound if one.index is None and not one.is_element), None)
    return None


def _kept_on_device(read: Value, *, is_float: bool) -> str | None:
    """What takes the place of `item()`: a count stays whole, a loss is summed in float32 whatever it is in.
    None where it cannot be told which of the two it is."""
    if _is_count(read):
        return "detach()" if not is_float else "detach().float()"
    text = ast.unparse(read.node).lower()
    if is_float or "loss" in text:
        return "detach().float()"
    return None


def _is_count(read: Value) -> bool:
    """Whether a value is a sum of comparisons."""
    nodes: list[ast.expr] = [read.node]
    for name in find(read.node, ast.Name):
        nodes.extend(one.value for one in read.outline.lookup(name) if one.value is not None)
    return any(
        isinstance(node, ast.Compare) or last_name(getattr(node, "func", node)) in ("eq", "count_nonzero")
        for root in nodes
        for node in ast.walk(root)
    )


def _torch_name(file: Outline) -> str | None:
    return next((name for name, full in file.aliases.items() if full == "torch"), None)


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, (".item()",)))
