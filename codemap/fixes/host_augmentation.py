"""Transforms on the host: make the image float after it was cropped and resized, not before; use the fast processor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import takewhile

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .calls import edit_call
from .edits import Patch
from .loaders import loader_argument, loaders_at
from .outline import last_name
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher

_SLUG = "host-augmentation"
_TO_FLOAT = frozenset({"ToTensor", "ToDtype", "ConvertImageDtype", "ConvertDtype"})
_EXACT = frozenset({"CenterCrop", "RandomCrop", "RandomHorizontalFlip", "RandomVerticalFlip", "Pad"})
"""Move pixels and change none, so that they may come before or after the cast."""
_RESIZING = frozenset({"Resize", "RandomResizedCrop", "Scale", "RandomShortestSize", "ScaleJitter"})
_PROCESSOR = re.compile(r"\w*(ImageProcessor|FeatureExtractor|Processor)$")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for made in _made(view):
        assert isinstance(made.node, ast.Call)
        answer = _reordered(view, made) if last_name(made.node.func) == "Compose" else _fast(view, made)
        if answer is not None:
            return answer
    return None


def _made(view: Scene) -> Iterator[Value]:
    """Where the transforms that the place calls were made: in its calls, or with the dataset behind its loader."""
    for frame in view.frames:
        for call in frame.calls():
            if _is_transform(Value(frame.outline, call)):
                yield Value(frame.outline, call)
            yield from view.resolver.find(Value(frame.outline, call.func), _is_transform)
    for loader in loaders_at(view):
        dataset = loader_argument(view.resolver, loader, "dataset").value
        if dataset is not None:
            yield from _given_to(view.resolver, dataset)


def _given_to(resolver: Resolver, dataset: Value) -> Iterator[Value]:
    for made in resolver.find(dataset, lambda one: isinstance(one.node, ast.Call)):
        assert isinstance(made.node, ast.Call)
        for keyword in made.node.keywords:
            if keyword.arg in ("transform", "transforms"):
                yield from resolver.find(Value(made.outline, keyword.value), _is_transform)


def _is_transform(value: Value) -> bool:
    node = value.node
    if not isinstance(node, ast.Call):
        return False
    if last_name(node.func) == "Compose":
        return bool(node.args) and isinstance(node.args[0], ast.List | ast.Tuple)
    return last_name(node.func) == "from_pretrained" and _owner(node) is not None


def _owner(call: ast.Call) -> str | None:
    """The processor class whose `from_pretrained` is called."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    name = last_name(owner) if owner is not None else ""
    return name if _PROCESSOR.match(name) else None


def _reordered(view: Scene, made: Value) -> Confirmation | None:
    """The cast moved behind the crops and resizes that follow it."""
    assert isinstance(made.node, ast.Call)
    steps = made.node.args[0]
    assert isinstance(steps, ast.List | ast.Tuple)
    names = [last_name(step.func) if isinstance(step, ast.Call) else "" for step in steps.elts]
    at = next((i for i, (name, step) in enumerate(zip(names, steps.elts, strict=True)) if _casts(name, step)), None)
    if at is None:
        return None
    moved = list(takewhile(lambda name: name in _EXACT | _RESIZING, names[at + 1 :]))
    if not moved:
        return None
    patch = Patch(made.outline)
    after = steps.elts[at + 1 : at + 1 + len(moved)]
    for old, new in zip(steps.elts[at : at + 1 + len(moved)], [*after, steps.elts[at]], strict=True):
        patch.replace(old, made.outline.segment(new))
    safety = Safety.UNSAFE if _RESIZING.intersection(moved) else Safety.SAFE
    fix = Fix(_SLUG, f"Make the image float after {_listed(moved)}", safety, patch.edits())
    place = made.outline.location(steps.elts[at], view.here.place)
    return Confirmation(place, (fix,), (), "images are made float before they are made small")


def _casts(name: str, step: ast.expr) -> bool:
    """Whether a transform makes the image float32: `ToDtype(torch.uint8)` does not."""
    if name not in _TO_FLOAT or not isinstance(step, ast.Call):
        return False
    return name == "ToTensor" or any(last_name(part).startswith("float") for part in ast.walk(step))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _fast(view: Scene, made: Value) -> Confirmation | None:
    """The processor that works on tensors instead of the one that goes through PIL and numpy."""
    call = made.node
    assert isinstance(call, ast.Call)
    held = next((keyword for keyword in call.keywords if keyword.arg == "use_fast"), None)
    if any(keyword.arg is None for keyword in call.keywords) or (_owner(call) or "").endswith("Fast"):
        return None
    if held is not None and not (isinstance(held.value, ast.Constant) and held.value.value is False):
        return None
    patch = Patch(made.outline)
    column = made.outline.position(made.outline.span(call)[0])[1] - 1
    patch.replace(call, edit_call(made.outline.segment(call), {"use_fast": "True"}, column=column))
    fix = Fix(f"{_SLUG}/fast", "Use the fast image processor", Safety.UNSAFE, patch.edits())
    place = made.outline.location(call, view.here.place)
    return Confirmation(place, (fix,), (), "images go through the slow image processor")


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("Compose", "from_pretrained")),
    cure=Cure(re.compile(r"use_fast\s*=\s*True"), is_elsewhere=True),
)
