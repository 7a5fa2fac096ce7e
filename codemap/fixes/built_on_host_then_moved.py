"""A tensor filled on the host and copied: make it on the device."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .calls import edit_call
from .edits import Patch
from .outline import Outline, last_name
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher
from .transfers import device_argument, is_dtype, is_move

_SLUG = "built-on-host-then-moved"
_SAME = ("zeros", "ones", "full", "empty", "arange", "linspace", "logspace", "eye", "tensor", "as_tensor")
_RANDOM = ("rand", "randn", "randint", "randperm", "normal")
"""Made on the device they draw from the device's generator: other numbers."""
_RESHAPING = ("view", "reshape", "unsqueeze", "squeeze", "expand", "repeat", "t", "transpose", "permute", "flatten")
_CASTING = ("float", "half", "double", "long", "int", "bool", "to")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    file = view.here.outline
    for call in view.here.calls():
        if not is_move(file, call):
            continue
        built = _factory(file, call) or _named_factory(view, call)
        if built is not None:
            return _confirmation(view, call, built)
    numbers = [call for call in view.here.calls() if _is_number_on_device(file, call)]
    return _filled(view, [one for one in numbers if file.statement(one) is file.statement(numbers[0])])


def _is_number_on_device(file: Outline, call: ast.Call) -> bool:
    """`torch.tensor(h // s, device=device)`: one number, built on the host and copied."""
    device = next((keyword.value for keyword in call.keywords if keyword.arg == "device"), None)
    if file.dotted(call.func) != "torch.tensor" or device is None or len(call.args) != 1:
        return False
    return not (isinstance(device, ast.Constant) and device.value in (None, "cpu")) and _is_number(file, call.args[0])


def _is_number(file: Outline, node: ast.expr) -> bool:
    """Whether an expression is certainly one number, whatever its names hold: no list can be divided or negated."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float)
        case ast.UnaryOp(op=ast.USub()):
            return True
        case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Sub() | ast.Mod() | ast.Pow()):
            return not any(isinstance(side, ast.Set) for side in (node.left, node.right))
        case ast.Call():
            return file.dotted(node.func) in ("int", "float", "len") or file.dotted(node.func).startswith("math.")
        case _:
            return False


def _filled(view: Scene, numbers: list[ast.Call]) -> Confirmation | None:
    if not numbers:
        return None
    file = view.here.outline
    patch = Patch(file)
    for call in numbers:
        name_end = file.span(call.func)[1]
        patch.replace_span(name_end - len("tensor"), name_end, "full")
        patch.insert(file.span(call.args[0])[0], "(), ")
    fix = Fix(_SLUG, "Fill it on the device (torch.full)", Safety.SAFE, patch.edits())
    return Confirmation(file.location(file.statement(numbers[0]), view.case.location), (fix,))


def _confirmation(view: Scene, move: ast.Call, factory: ast.Call) -> Confirmation:
    file = view.here.outline
    statement = file.statement(move)
    place = file.location(file.statement(factory), view.case.location)
    target = _target(view.resolver, file, move)
    if target is None or any(keyword.arg in ("device", None) for keyword in factory.keywords):
        return Confirmation(place)
    assert isinstance(move.func, ast.Attribute)
    if not file.dotted(factory.func).startswith("torch."):
        return Confirmation(place)
    patch = Patch(file)
    column = file.position(file.span(factory)[0])[1] - 1
    added = {"device": target, **_dtype(file, move)}
    patch.replace(factory, edit_call(file.segment(factory), added, column=column))
    if file.statement(factory) is not statement:
        patch.delete([statement])  # `x = x.to(device)` alone
    else:
        patch.replace_span(file.span(move.func.value)[1], file.span(move)[1], _closing(file, move))
    is_random = last_name(factory.func) in _RANDOM
    safety = Safety.UNSAFE if is_random else Safety.SAFE
    return Confirmation(place, (Fix(_SLUG, "Make the tensor on the device (device=...)", safety, patch.edits()),))


def _factory(file: Outline, move: ast.Call) -> ast.Call | None:
    """The `torch.zeros(...)` at the root of a chain `torch.zeros(...).view(...).to(device)`."""
    assert isinstance(move.func, ast.Attribute)
    current = move.func.value
    while isinstance(current, ast.Call):
        name = file.dotted(current.func)
        if name.startswith("torch.") and name.count(".") == 1 and last_name(current.func) in (*_SAME, *_RANDOM):
            return current
        if (
            not isinstance(current.func, ast.Attribute)
            or current.func.attr not in (*_RESHAPING, *_CASTING)
            or is_move(file, current)
        ):
            return None
        current = current.func.value
    return None


def _named_factory(view: Scene, move: ast.Call) -> ast.Call | None:
    """`mask = torch.zeros(n)` directly followed by `mask = mask.to(device)`."""
    file = view.here.outline
    assert isinstance(move.func, ast.Attribute)
    name, statement = move.func.value, file.statement(move)
    block = file.block(statement)
    position = block.index(statement)
    before = block[position - 1] if position else None
    if (
        isinstance(name, ast.Name)
        and isinstance(before, ast.Assign)
        and isinstance(before.value, ast.Call)
        and [last_name(target) for target in before.targets] == [name.id]
        and isinstance(statement, ast.Assign)
        and statement.value is move
        and [last_name(target) for target in statement.targets] == [name.id]
        and file.dotted(before.value.func) in {f"torch.{one}" for one in (*_SAME, *_RANDOM)}
    ):
        return before.value
    return None


def _target(resolver: Resolver, file: Outline, move: ast.Call) -> str | None:
    """The text of the device that a tensor is moved to; None where the argument may be a tensor or more."""
    assert isinstance(move.func, ast.Attribute)
    if move.func.attr == "cuda":
        index = next((keyword.value for keyword in move.keywords if keyword.arg == "device"), None)
        index = index or next((arg for arg in move.args if not _is_bool(arg)), None)
        return '"cuda"' if index is None else file.segment(index)
    if any(keyword.arg in ("memory_format", "copy", None) for keyword in move.keywords):
        return None
    node = device_argument(file, move)
    if node is None:
        return None
    named = last_name(node).lower()
    if "device" in named or named in ("dev", "gpu") or isinstance(node, ast.Constant):
        return file.segment(node)
    if isinstance(node, ast.Call) and last_name(node.func) in ("device", "get_device", "device_of"):
        return file.segment(node)
    made = resolver.find(
        Value(file, node), lambda one: file.dotted(getattr(one.node, "func", one.node)) == "torch.device"
    )
    return file.segment(node) if made else None


def _dtype(file: Outline, move: ast.Call) -> dict[str, str]:
    """The type that the move also sets, as an argument of the factory."""
    given = next((keyword.value for keyword in move.keywords if keyword.arg == "dtype"), None)
    given = given or next((arg for arg in move.args[1:] if is_dtype(file, arg)), None)
    return {} if given is None else {"dtype": file.segment(given)}


def _closing(file: Outline, move: ast.Call) -> str:
    """What stays of `.to(device)` behind its receiver: a bracket that closes round the receiver, if any."""
    assert isinstance(move.func, ast.Attribute)
    between = file.text[file.span(move.func.value)[1] : file.span(move.func)[1] - len(move.func.attr)]
    return between.rstrip().rstrip(".").rstrip() if ")" in between else ""


def _is_bool(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, (".to(", ".cuda(", "torch.tensor(")))
