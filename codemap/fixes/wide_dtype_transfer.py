"""Images converted on the host and then sent: send the bytes, and convert them on the device."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .calls import edit_call
from .edits import Patch
from .loaders import dataset_class, feeding, loader_argument
from .outline import Outline, find, last_name
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher
from .transfers import device_argument, is_dtype, moved_tensors

_SLUG = "wide-dtype-transfer"
_POINTWISE = ("div", "div_", "sub", "sub_", "mul", "mul_", "add", "add_", "clamp", "clamp_", "true_divide")
_SHAPING = ("permute", "contiguous", "view", "unsqueeze", "flip", "transpose", "reshape", "flatten", "squeeze")
_FLOATS = ("torch.float32", "torch.float")
_MOST_STEPS = 24
_ADVICE = "return bytes (uint8) from the data set and convert them to float32 behind the copy"


@dataclass(slots=True)
class _Way:
    """How a tensor of bytes became what is sent, walked from the move back to the conversion."""

    root: Value | None = None
    """The bytes."""
    operands: list[ast.expr] = field(default_factory=list)
    """What is subtracted, multiplied, ... on the way, numbers left out: it has to move as well."""
    has_255: bool = False
    """Whether the values are scaled by 255: then they were bytes."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    file = view.here.outline
    for move in moved_tensors(view.here):
        if any(keyword.arg is None for keyword in move.keywords):
            continue
        if (typed := _typed(file, move)) is not None:
            return _split(view, move, typed)
        way = _Way()
        assert isinstance(move.func, ast.Attribute)
        if _walk(file, move.func.value, way) and way.root is not None:
            return _reordered(view, move, way)
        if (where := _in_dataset(view, Value(file, move.func.value))) is not None:
            place = where.outline.location(where.outline.statement(where.node), case.location)
            related = () if place.line == case.location.line else (Related("the copy to the device", case.location),)
            return Confirmation(place, (), related, _ADVICE)
    return None


# The conversion is in the same function


def _walk(file: Outline, node: ast.expr, way: _Way) -> bool:
    """Follow a tensor back to where it is made float32; False where something on the way is not understood."""
    for _ in range(_MOST_STEPS):
        match node:
            case ast.Call(func=ast.Attribute(value=receiver, attr=method)) if _widens(file, node):
                way.root = Value(file, receiver)
                return method != "to" or len(node.args) + len(node.keywords) == 1
            case ast.Call(func=ast.Attribute(value=receiver, attr=method)) if method in (*_POINTWISE, *_SHAPING):
                if method in _POINTWISE:
                    _note(way, node.args)
                node = receiver
            case ast.Call(args=[tensor, *_]) if file.dotted(node.func).startswith("torchvision."):
                if last_name(node.func) != "normalize":
                    return False
                node = tensor
            case ast.BinOp(left=left, right=right, op=op):
                _note(way, [right])
                if isinstance(op, ast.Div) and _is_255(right) and not _reaches_conversion(file, left):
                    way.root = Value(file, left)
                    return True
                node = left
            case ast.Name() if (bound := _only_use(file, node)) is not None:
                node = bound
            case _:
                return False
    return False


def _widens(file: Outline, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "float":
        return not call.args
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "dtype")]
    return call.func.attr in ("to", "type") and any(file.dotted(one) in _FLOATS for one in given)


def _note(way: _Way, operands: list[ast.expr]) -> None:
    for operand in operands:
        way.has_255 = way.has_255 or _is_255(operand)
        if find(operand, ast.Name):
            way.operands.append(operand)


def _is_255(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (255, 255.0)


def _reaches_conversion(file: Outline, node: ast.expr) -> bool:
    return _walk(file, node, _Way())


def _only_use(file: Outline, name: ast.Name) -> ast.expr | None:
    """What a name was given directly before, if this is all that reads it until it is bound anew."""
    statement = file.statement(name)
    block = file.block(statement)
    for earlier in reversed(block[: block.index(statement)]):
        if not any(one.id == name.id for one in find(earlier, ast.Name)):
            continue
        is_plain = isinstance(earlier, ast.Assign) and [last_name(one) for one in earlier.targets] == [name.id]
        if not is_plain or not isinstance(earlier, ast.Assign) or not isinstance(earlier.targets[0], ast.Name):
            return None
        return earlier.value if _is_read_once(file, name, statement) else None
    return None


def _is_read_once(file: Outline, name: ast.Name, statement: ast.stmt) -> bool:
    """Whether nothing behind a statement reads the name, or the statement binds it anew."""
    rebinds = isinstance(statement, ast.Assign) and any(last_name(one) == name.id for one in statement.targets)
    reads = [one for one in find(file.function(name), ast.Name) if one.id == name.id and isinstance(one.ctx, ast.Load)]
    here = [one for one in reads if file.statement(one) is statement]
    later = [one for one in reads if one.lineno > (statement.end_lineno or statement.lineno)]
    return len(here) == 1 and (rebinds or not later)


def _reordered(view: Scene, move: ast.Call, way: _Way) -> Confirmation:
    """The move put directly behind the bytes, and its operands moved too."""
    file, root = view.here.outline, way.root
    assert root is not None and isinstance(move.func, ast.Attribute)
    place = file.location(file.statement(move), view.case.location)
    is_atom = isinstance(root.node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    movable = [isinstance(one, ast.Name | ast.Attribute | ast.Subscript) for one in way.operands]
    device = device_argument(file, move) or next(iter(move.args), None)
    if not is_atom or not all(movable) or any(one.arg not in ("device", "non_blocking") for one in move.keywords):
        return Confirmation(place, message="send the bytes and convert them on the device")
    moved = file.text[file.span(move.func)[1] - len(move.func.attr) : file.span(move)[1]]
    there = "cuda()" if device is None else f"to({file.segment(device)})"
    patch, statement = Patch(file), file.statement(move)
    if isinstance(statement, ast.Assign) and statement.value is move and _gives_back(statement, move.func.value):
        patch.delete([statement])  # `x = x.to(device)`
    else:
        patch.replace_span(file.span(move.func.value)[1], file.span(move)[1], _bracket(file, move))
    patch.insert(file.span(root.node)[1], f".{moved}")
    for operand in way.operands:
        patch.insert(file.span(operand)[1], f".{there}")
    safety = Safety.SAFE if way.has_255 else Safety.UNSAFE
    return Confirmation(place, (Fix(_SLUG, "Send the bytes and convert them on the device", safety, patch.edits()),))


def _gives_back(statement: ast.Assign, receiver: ast.expr) -> bool:
    return [ast.unparse(target) for target in statement.targets] == [ast.unparse(receiver)]


def _bracket(file: Outline, move: ast.Call) -> str:
    """What stays of `.to(device)` behind its receiver: a bracket that closes round the receiver, if any."""
    assert isinstance(move.func, ast.Attribute)
    between = file.text[file.span(move.func.value)[1] : file.span(move.func)[1] - len(move.func.attr)]
    return between.rstrip().rstrip(".").rstrip() if ")" in between else ""


# The move converts as well


def _typed(file: Outline, move: ast.Call) -> ast.expr | None:
    """The float32 that a move asks for beside the device."""
    given = [*move.args, *(keyword.value for keyword in move.keywords if keyword.arg == "dtype")]
    return next((one for one in given if is_dtype(file, one) and file.dotted(one) in _FLOATS), None)


def _split(view: Scene, move: ast.Call, typed: ast.expr) -> Confirmation:
    """`x.to(device, torch.float32)`, which converts before it sends, as `x.to(device).to(torch.float32)`."""
    file, patch = view.here.outline, Patch(view.here.outline)
    assert isinstance(move.func, ast.Attribute)
    positions = [position for position, one in enumerate(move.args) if one is typed]
    start, end = file.span(move.func)[1] - len(move.func.attr), file.span(move)[1]
    alone = edit_call(file.text[start:end], drop=("dtype",), drop_positions=positions)
    patch.replace_span(start, end, f"{alone}.to({file.segment(typed)})")
    place = file.location(file.statement(move), view.case.location)
    # Of bytes, the same values; of wider types, more would be sent.
    return Confirmation(place, (Fix(_SLUG, "Send first, convert behind", Safety.UNSAFE, patch.edits()),))


# The data set converts


def _in_dataset(view: Scene, tensor: Value) -> Value | None:
    """Where the data set of the loader that a batch came from makes float32 of bytes."""
    if not _is_of_a_batch(tensor):
        return None
    for loader in feeding(view.resolver, tensor):
        given = loader_argument(view.resolver, loader, "dataset").value
        if given is not None and (made := _transforms(view.resolver, given)):
            return made[0]
        dataset = dataset_class(view.resolver, loader)
        for node in find(dataset.node, ast.expr) if dataset is not None else ():
            assert dataset is not None
            value = Value(dataset.outline, node)
            if _is_to_tensor(value) or (isinstance(node, ast.BinOp) and _is_255(node.right)):
                return value
    return None


def _is_of_a_batch(tensor: Value) -> bool:
    """Whether a tensor is, or is a part of, what a loop goes over."""
    root = tensor.node
    while isinstance(root, ast.Subscript | ast.Attribute):
        root = root.value
    bound = tensor.outline.lookup(root) if isinstance(root, ast.Name) else []
    return any(one.is_element or last_name(getattr(one.value, "func", root)) == "next" for one in bound)


def _transforms(resolver: Resolver, dataset: Value) -> list[Value]:
    """The conversions among the transforms that a data set is made with."""
    made = resolver.find(dataset, lambda one: isinstance(one.node, ast.Call))
    arguments = [
        Value(one.outline, argument)
        for one in made
        if isinstance(one.node, ast.Call)
        for argument in (*one.node.args, *(keyword.value for keyword in one.node.keywords))
    ]
    return [found for argument in arguments for found in resolver.find(argument, _is_to_tensor)]


def _is_to_tensor(value: Value) -> bool:
    return isinstance(value.node, ast.Call) and last_name(value.node.func) in ("ToTensor", "to_tensor")


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, (".to(", ".cuda(")), required=True)
