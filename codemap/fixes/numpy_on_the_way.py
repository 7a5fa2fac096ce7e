"""Images that numpy normalises in float64 on their way to torch: crop first, and compute in float32."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .crops import crops_of
from .edits import Patch
from .normalisations import Normalisation, is_float32, is_single, normalisation_of, normalisations
from .outline import Outline, last_name
from .resolve import Resolver, Value
from .scene import Frame, scene, searcher

_SLUG = "numpy-on-the-way"
_INTO_TORCH = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.tensor", "torch.asarray"})


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for frame in view.frames:
        if not frame.statements or "numpy" not in frame.outline.text:
            continue
        if entry := _entry(frame):
            return _of_entry(view.resolver, frame, entry)
        if own := normalisations(view.resolver, frame.outline, frame.outline.function(frame.statements[0])):
            after = _entry_behind(frame.outline, own[0])
            return _of_entry(view.resolver, frame, after) if after else None
    return None


def _entry(frame: Frame) -> ast.Call | None:
    """The call of the place that makes a tensor of an array."""
    return next((call for call in frame.calls() if _is_entry(frame.outline, call)), None)


def _entry_behind(file: Outline, normalisation: Normalisation) -> ast.Call | None:
    function = file.function(normalisation.value.node)
    return next((call for call in file.calls_in(function) if _is_entry(file, call)), None)


def _is_entry(file: Outline, call: ast.Call) -> bool:
    return bool(call.args) and file.dotted(call.func) in _INTO_TORCH


def _of_entry(resolver: Resolver, frame: Frame, entry: ast.Call) -> Confirmation | None:
    file = frame.outline
    found = normalisations(resolver, file, file.function(entry))
    if not found:
        behind = resolver.find(Value(file, entry.args[0]), lambda one: normalisation_of(resolver, one) is not None)
        found = [one for value in behind if (one := normalisation_of(resolver, value)) is not None]
    faulty = [one for one in found if one.is_double]
    if faulty:
        return _in_float32(frame, faulty)
    return None if found else _permuted(frame, entry)


def _in_float32(frame: Frame, faulty: list[Normalisation]) -> Confirmation:
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
    crops = crops_of(file, first) if len(faulty) == 1 else None
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


def _text(file: Outline, one: Normalisation, numpy: str, image: ast.expr, *, casts: bool = True) -> str:
    """The normalisation's text with `image` in place of its own, in float32."""
    start, _ = file.span(one.value.node)
    text = file.segment(one.value.node)
    parts = [(file.span(leaf), f"{numpy}.float32({file.segment(leaf)})") for leaf in one.arrays]
    single = not casts or is_single(file, one.image)
    held = file.segment(image)
    parts.append((file.span(one.image), held if single else f"{numpy}.float32({held})"))
    for (begin, end), new in sorted(parts, reverse=True):
        text = text[: begin - start] + new + text[end - start :]
    return text


def _is_cast_later(file: Outline, one: Normalisation, frame: Frame) -> bool:
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
    return any(is_float32(file, argument) for argument in given)


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
