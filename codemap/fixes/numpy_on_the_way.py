"""Images that numpy normalises in float64 on their way to torch: crop first, and compute in float32."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .bindings import walk_scope
from .edits import Patch
from .outline import Outline, Scope, find, last_name
from .resolve import Resolver, Value
from .scene import Frame, scene, searcher

_SLUG = "numpy-on-the-way"
_INTO_TORCH = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.tensor", "torch.asarray"})
_ARRAYS = frozenset({"numpy.array", "numpy.asarray"})
_STACKS = frozenset({"numpy.stack", "numpy.array", "numpy.asarray"})
_FLOAT32 = frozenset({"numpy.float32", "torch.float32", "torch.float"})
_CHANNELS = (1, 3, 4)
"""Lengths of a constant that can only run along an image's channels."""


@dataclass(frozen=True, slots=True)
class _Normalisation:
    """An expression of `+ - * /` over one image and constants."""

    value: Value
    image: ast.expr
    arrays: tuple[ast.expr, ...]
    """The constants that are float64 arrays."""
    is_double: bool
    """Whether the image is made float64 by it, or kept so."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for frame in view.frames:
        if not frame.statements or "numpy" not in frame.outline.text:
            continue
        if entry := _entry(frame):
            return _of_entry(view.resolver, frame, entry)
        if own := _normalisations(view.resolver, frame.outline, frame.outline.function(frame.statements[0])):
            after = _entry_behind(frame.outline, own[0])
            return _of_entry(view.resolver, frame, after) if after else None
    return None


def _entry(frame: Frame) -> ast.Call | None:
    """The call of the place that makes a tensor of an array."""
    return next((call for call in frame.calls() if _is_entry(frame.outline, call)), None)


def _entry_behind(file: Outline, normalisation: _Normalisation) -> ast.Call | None:
    function = file.function(normalisation.value.node)
    return next((call for call in file.calls_in(function) if _is_entry(file, call)), None)


def _is_entry(file: Outline, call: ast.Call) -> bool:
    return bool(call.args) and file.dotted(call.func) in _INTO_TORCH


def _of_entry(resolver: Resolver, frame: Frame, entry: ast.Call) -> Confirmation | None:
    file = frame.outline
    found = _normalisations(resolver, file, file.function(entry))
    if not found:
        behind = resolver.find(Value(file, entry.args[0]), lambda one: _read(resolver, one) is not None)
        found = [one for value in behind if (one := _read(resolver, value)) is not None]
    faulty = [one for one in found if one.is_double]
    if faulty:
        return _in_float32(resolver, frame, faulty)
    return None if found else _permuted(frame, entry)


def _normalisations(resolver: Resolver, file: Outline, function: Scope) -> list[_Normalisation]:
    """Those in a function's own statements, in the order of the text."""
    found = []
    for statement in walk_scope(function):
        if isinstance(statement, ast.Assign | ast.Return | ast.AugAssign):
            for node in _outermost_operations(statement):
                if (one := _read(resolver, Value(file, node))) is not None:
                    found.append(one)
    return found


def _outermost_operations(node: ast.AST) -> Iterator[ast.BinOp]:
    if isinstance(node, ast.BinOp):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost_operations(child)


def _read(resolver: Resolver, value: Value) -> _Normalisation | None:
    """An expression as a normalisation; None if it is something else."""
    leaves = list(_leaves(value.node))
    if len(leaves) < 2:
        return None
    constants = [leaf for leaf in leaves if _is_constant(resolver, Value(value.outline, leaf))]
    images = [leaf for leaf in leaves if leaf not in constants]
    if len(images) != 1 or not constants or not _may_be_image(value.outline, images[0]):
        return None
    arrays = tuple(leaf for leaf in constants if _is_double_array(resolver, Value(value.outline, leaf)))
    has_array = any(_is_listed(resolver, Value(value.outline, leaf)) for leaf in constants)
    scales = any(isinstance(leaf, ast.Constant) and leaf.value in (255, 255.0, 127.5) for leaf in constants)
    if not (has_array or scales):
        return None
    single = _is_single(value.outline, images[0])
    return _Normalisation(value, images[0], arrays, bool(arrays) or not single)


def _may_be_image(file: Outline, node: ast.expr) -> bool:
    """Whether an expression can be an array of an image: not a tensor of torch, nor one number of a list."""
    if any(file.dotted(call.func).startswith("torch.") for call in find(node, ast.Call)):
        return False
    bound = file.lookup(node) if isinstance(node, ast.Name) else []
    if any(isinstance(one.node, ast.comprehension) for one in bound):
        return False
    made = [call for one in bound if one.value is not None for call in find(one.value, ast.Call)]
    return not any(file.dotted(call.func).startswith("torch.") for call in made)


def _is_listed(resolver: Resolver, value: Value) -> bool:
    """Whether a constant is an array or a list of numbers, one for each channel."""
    given = [value, *_given(resolver, value)] if isinstance(value.node, ast.Name | ast.Attribute) else [value]
    return any(_is_array_call(one) or isinstance(one.node, ast.List | ast.Tuple) for one in given)


def _leaves(node: ast.AST) -> Iterator[ast.expr]:
    """What `+ - * /` are applied to."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        yield from _leaves(node.left)
        yield from _leaves(node.right)
    elif isinstance(node, ast.expr):
        yield node


def _is_constant(resolver: Resolver, value: Value) -> bool:
    """Whether an expression is a number, or a list of numbers given in the source."""
    node = value.node
    if isinstance(node, ast.UnaryOp):
        return _is_constant(resolver, Value(value.outline, node.operand))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if isinstance(node, ast.List | ast.Tuple):
        return bool(node.elts) and all(_is_constant(resolver, Value(value.outline, part)) for part in node.elts)
    if _is_array_call(value):
        assert isinstance(node, ast.Call)
        return _is_constant(resolver, Value(value.outline, node.args[0]))
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    given = _given(resolver, value)
    return bool(given) and all(one.node is not node and _is_constant(resolver, one) for one in given)


def _given(resolver: Resolver, value: Value) -> list[Value]:
    """The displays and array calls that a name was given; anything else that it may hold."""
    return resolver.find(value, lambda one: not isinstance(one.node, ast.Name | ast.Attribute | ast.IfExp))


def _is_array_call(value: Value) -> bool:
    node = value.node
    return (
        isinstance(node, ast.Call)
        and bool(node.args)
        and value.outline.dotted(node.func) in _ARRAYS | {"numpy.float32", "numpy.float64"}
    )


def _is_double_array(resolver: Resolver, value: Value) -> bool:
    """Whether a constant is an array of float64, or a list that becomes one: it makes everything float64."""
    is_own = _is_array_call(value) or isinstance(value.node, ast.List | ast.Tuple)
    given = [value] if is_own else _given(resolver, value)
    arrays = [one for one in given if _is_array_call(one) or isinstance(one.node, ast.List | ast.Tuple)]
    return any(not _is_float32(one.outline, one.node) for one in arrays)


def _is_float32(file: Outline, node: ast.AST) -> bool:
    """Whether an expression's own text makes it float32."""
    return any(
        (isinstance(part, ast.Attribute) and file.dotted(part) in _FLOAT32)
        or (isinstance(part, ast.Constant) and part.value == "float32")
        for part in ast.walk(node)
    )


def _is_single(file: Outline, image: ast.expr) -> bool:
    """Whether an image is float32 by its own text, or by that of the statement above that gave it its name."""
    if not isinstance(image, ast.Name):
        return _is_float32(file, image)
    given = [one.value for one in file.bindings(file.function(image), image.id) if one.value is not None]
    above = [value for value in given if value.lineno < image.lineno]
    return bool(above) and _is_float32(file, above[-1])


def _in_float32(resolver: Resolver, frame: Frame, faulty: list[_Normalisation]) -> Confirmation:
    first = faulty[0]
    file = first.value.outline
    place = file.location(file.statement(first.value.node), frame.place)
    related = (Related("made a tensor here", frame.place),) if place.line != frame.place.line else ()
    if any(one.value.outline is not file for one in faulty):
        return Confirmation(place, (), related, "the normalisation is spread over several files")
    patch = Patch(file)
    numpy = next((name for name, full in file.aliases.items() if full == "numpy"), "")
    if not numpy:
        return Confirmation(place, (), related, "the file does not import numpy")
    crops = _crops(file, first) if len(faulty) == 1 else None
    if crops is not None:
        crops.apply(patch, _text(file, first, numpy, crops.stack))
        title = "Crop first, then normalise the crops in float32"
    else:
        for number, one in enumerate(faulty):
            patch.replace(one.value.node, _text(file, one, numpy, one.image, casts=not number))
        title = "Normalise in float32"
    safety = Safety.SAFE if _is_cast_later(file, first, frame) else Safety.UNSAFE
    return Confirmation(place, (Fix(_SLUG, title, safety, patch.edits()),), related, _message(crops is not None))


def _message(is_cropped: bool) -> str:
    return (
        "all of a frame is normalised in float64 before it is cropped"
        if is_cropped
        else "images are normalised in float64 by numpy"
    )


def _text(file: Outline, one: _Normalisation, numpy: str, image: ast.expr, *, casts: bool = True) -> str:
    """The normalisation's text with `image` in place of its own, in float32."""
    start, _ = file.span(one.value.node)
    text = file.segment(one.value.node)
    parts = [(file.span(leaf), f"{numpy}.float32({file.segment(leaf)})") for leaf in one.arrays]
    single = not casts or _is_single(file, one.image)
    held = file.segment(image)
    parts.append((file.span(one.image), held if single else f"{numpy}.float32({held})"))
    for (begin, end), new in sorted(parts, reverse=True):
        text = text[: begin - start] + new + text[end - start :]
    return text


def _is_cast_later(file: Outline, one: _Normalisation, frame: Frame) -> bool:
    """Whether the result is made float32 in any case, so that only rounding differs."""
    function = file.function(one.value.node)
    line = one.value.node.lineno
    later = [call for call in file.calls_in(function) if (call.end_lineno or call.lineno) >= line] + frame.calls()
    return any(
        (last_name(call.func) == "float" and not call.args)
        or (last_name(call.func) in ("astype", "to", "tensor", "as_tensor") and _has_float32(file, call))
        for call in later
    )


def _has_float32(file: Outline, call: ast.Call) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(_is_float32(file, argument) for argument in given)


@dataclass(frozen=True, slots=True)
class _Crops:
    """A normalised frame that is used for nothing but crops, which are then stacked."""

    assign: ast.Assign
    reads: tuple[ast.Name, ...]
    frame: str
    stack: ast.Call

    def apply(self, patch: Patch, normalised: str) -> None:
        """Crop the frame itself; the name of the normalised frame becomes that of the normalised crops."""
        for read in self.reads:
            patch.replace(read, self.frame)
        file = patch.outline
        assert isinstance(self.assign.targets[0], ast.Name)
        name, statement = self.assign.targets[0].id, file.statement(self.stack)
        line = f"{file.indentation(statement)}{name} = {normalised}{file.newline}"
        patch.insert(file.line_starts[statement.lineno - 1], line)
        patch.replace(self.stack, name)
        patch.delete([self.assign])


def _crops(file: Outline, one: _Normalisation) -> _Crops | None:
    """The crops that are taken of a normalised frame; None where it is used for anything else."""
    assign = file.statement(one.value.node)
    if not isinstance(assign, ast.Assign) or assign.value is not one.value.node or not isinstance(one.image, ast.Name):
        return None
    function, target = file.function(assign), assign.targets[0]
    if len(assign.targets) > 1 or not isinstance(target, ast.Name) or _constant_lengths(one) - set(_CHANNELS):
        return None
    if len(file.bindings(function, target.id)) != 1 or len(file.bindings(function, one.image.id)) > 1:
        return None
    reads = _reads(file, function, target.id)
    lists = {_list_of(file, read) for read in reads}
    name = lists.pop() if len(lists) == 1 else ""
    if not reads or not name or len(file.bindings(function, name)) != 1:
        return None
    uses = [use for use in _reads(file, function, name) if not _is_append(file.parents[use])]
    if len(uses) != 1:
        return None
    stack = file.parents[uses[0]]
    if not isinstance(stack, ast.Call) or file.dotted(stack.func) not in _STACKS or len(stack.args) != 1:
        return None
    shares_line = file.indentation(file.statement(stack)) == "" != file.indentation(assign)
    return None if stack.keywords or shares_line else _Crops(assign, tuple(reads), one.image.id, stack)


def _constant_lengths(one: _Normalisation) -> set[int]:
    """Lengths of the constants written out in the file; a name from elsewhere counts as channels."""
    file = one.value.outline
    names = {leaf.id for leaf in one.arrays if isinstance(leaf, ast.Name)}
    bound = [b.value for name in names for b in file.bindings(file.tree, name) if b.value is not None]
    return {len(display.elts) for value in bound for display in find(value, ast.List)[:1]}


def _reads(file: Outline, function: ast.AST, name: str) -> list[ast.Name]:
    return [
        node
        for node in find(function, ast.Name)
        if node.id == name and isinstance(node.ctx, ast.Load) and file.function(node) is function
    ]


def _list_of(file: Outline, read: ast.Name) -> str:
    """The list that a crop `image[rows, columns]` is gathered in; "" if it is no crop, or goes elsewhere."""
    crop = file.parents[read]
    if not isinstance(crop, ast.Subscript) or crop.value is not read or not _keeps_channels(crop.slice):
        return ""
    above = file.parents[crop]
    if isinstance(above, ast.Call) and _is_append(above.func) and isinstance(above.func, ast.Attribute):
        return last_name(above.func.value)
    held = file.parents[above] if isinstance(above, ast.ListComp) and above.elt is crop else None
    if isinstance(held, ast.Assign) and isinstance(held.targets[0], ast.Name):
        return held.targets[0].id
    return ""


def _is_append(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "append"


def _keeps_channels(index: ast.expr) -> bool:
    """Whether an index concerns rows and columns only."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return len(parts) <= 2 and not any(
        (isinstance(part, ast.Constant) and not isinstance(part.value, int)) or last_name(part) == "newaxis"
        for part in parts
    )


def _permuted(frame: Frame, entry: ast.Call) -> Confirmation | None:
    """`from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1)))`: the axes can be permuted in torch, without a copy."""
    file = frame.outline
    copied = entry.args[0]
    if len(entry.args) != 1 or entry.keywords or file.dotted(entry.func) != "torch.from_numpy":
        return None
    inner = _copied(file, copied)
    if (
        not isinstance(inner, ast.Call)
        or last_name(inner.func) != "transpose"
        or not isinstance(inner.func, ast.Attribute)
    ):
        return None
    is_function = file.dotted(inner.func) == "numpy.transpose"
    array = inner.args[0] if is_function else inner.func.value
    axes = inner.args[1:] if is_function else inner.args
    numpy = next((name for name, full in file.aliases.items() if full == "numpy"), "")
    if not axes or not numpy or inner.keywords:
        return None
    order = ", ".join(file.segment(axis) for axis in axes)
    patch = Patch(file)
    made = f"{file.segment(entry.func)}({numpy}.ascontiguousarray({file.segment(array)})).permute({order})"
    patch.replace(entry, made)
    fix = Fix(_SLUG, "Permute in torch, without a copy in numpy", Safety.UNSAFE, patch.edits())
    return Confirmation(
        file.location(file.statement(entry), frame.place), (fix,), (), "images are transposed and copied by numpy"
    )


def _copied(file: Outline, node: ast.expr) -> ast.expr | None:
    """What a copy to a dense array is made of."""
    if not isinstance(node, ast.Call):
        return None
    if file.dotted(node.func) == "numpy.ascontiguousarray" and len(node.args) == 1:
        return node.args[0]
    if isinstance(node.func, ast.Attribute) and node.func.attr == "copy" and not node.args:
        return node.func.value
    return None


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("from_numpy", "as_tensor", "torch.tensor")), required=True)
