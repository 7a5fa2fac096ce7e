"""A fused call that no fused kernel takes: its inputs brought into a form that one takes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from ...analyzer.findings import Fix, Safety, TextEdit
from .attention_parts import Refusal, given
from .base import Case, Confirmation, Fixer
from .calls import edit_call
from .edits import Patch
from .outline import Outline, last_name
from .scene import scene, searcher
from .versions import is_older

_SLUG = "sdpa-math-fallback"
_NAME = "scaled_dot_product_attention"
_OPERANDS = ("query", "key", "value")
_FORCED = ("SDPBackend.MATH", "enable_flash=False", "enable_flash_sdp(False)", "enable_mem_efficient_sdp(False)")
"""Words that switch fused kernels off."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the trace said of the call."""

    reason: str
    mask: str
    """Sizes of the mask, `2x16x16`; "none" or "" without one."""
    torch_version: str


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    told = Told(_evidence(case, "reason"), _evidence(case, "mask"), case.device.torch_version)
    for frame in view.frames:
        for call in frame.calls():
            if last_name(call.func) != _NAME:
                continue
            file = frame.outline
            place = file.location(file.statement(call), case.location)
            try:
                fix = _fix(file, call, told)
            except Refusal as refusal:
                return Confirmation(place, (), (), str(refusal))
            return None if fix is None else Confirmation(place, (fix,))
    return None


def _evidence(case: Case, id: str) -> str:
    return next((str(one.value) for one in case.finding.evidence if one.id == id), "")


def _fix(file: Outline, call: ast.Call, told: Told) -> Fix | None:
    """The fix for a reason; None where the call has it already."""
    if any(word in file.text for word in _FORCED):
        raise Refusal("the program switches fused kernels off")
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(keyword.arg is None for keyword in call.keywords):
        raise Refusal("the call's arguments are not written out")
    for words, make in _FIXES:
        if words in told.reason:
            return make(file, call, told)
    raise Refusal(f"what the fused kernels refuse: {told.reason or 'not recorded'}")


def _one_head(file: Outline, call: ast.Call, told: Told) -> Fix | None:
    """(batch, tokens, width) becomes (batch, 1, tokens, width)."""
    operands = _operands(call)
    mask = given(call, "attn_mask", 3)
    if any(_is_method(node, "unsqueeze") for node in operands):
        return None
    patch = Patch(file)
    for node in operands:
        patch.replace(node, f"{_atom(file, node)}.unsqueeze(1)")
    if mask is not None and not _is_none(mask) and told.mask.count("x") != 1:
        patch.replace(mask, _reshaped(file, mask, ".unsqueeze(1)"))
    patch.insert(file.span(call)[1], ".squeeze(1)")
    return Fix(_SLUG, "Give the fused call one head, which its kernels need", Safety.SAFE, patch.edits())


def _folded(file: Outline, call: ast.Call, _: Told) -> Fix | None:
    """(batch, windows, heads, tokens, width) becomes (batch * windows, heads, tokens, width)."""
    operands = _operands(call)
    mask = given(call, "attn_mask", 3)
    if any(_is_method(node, "flatten") for node in operands):
        return None
    if mask is not None and not _is_none(mask):
        raise Refusal("a mask would have to be folded as well")
    patch = Patch(file)
    for node in operands:
        patch.replace(node, f"{_atom(file, node)}.flatten(0, -4)")
    patch.insert(file.span(call)[1], f".unflatten(0, {_atom(file, operands[0])}.shape[:-3])")
    return Fix(_SLUG, "Fold the leading dimensions into the batch", Safety.SAFE, patch.edits())


def _mask_for_all(file: Outline, call: ast.Call, _: Told) -> Fix | None:
    """A mask of (heads, queries, keys) gets a batch of one."""
    mask = given(call, "attn_mask", 3)
    if mask is None or ".unsqueeze(" in file.segment(mask):
        return None
    edits = _with(file, mask, _reshaped(file, mask, ".unsqueeze(0)"))
    return Fix(_SLUG, "Give the mask a batch dimension", Safety.SAFE, edits)


def _grouped(file: Outline, call: ast.Call, told: Told) -> Fix | None:
    if any(keyword.arg == "enable_gqa" for keyword in call.keywords):
        return None
    if is_older(told.torch_version, (2, 5)):
        raise Refusal("enable_gqa needs PyTorch 2.5")
    patch = Patch(file)
    column = file.position(file.span(call)[0])[1] - 1
    patch.replace(call, edit_call(file.segment(call), {"enable_gqa": "True"}, column=column))
    return Fix(_SLUG, "Tell the fused call that heads share keys (enable_gqa=True)", Safety.SAFE, patch.edits())


def _dense(position: int) -> Callable[[Outline, ast.Call, Told], Fix | None]:
    def make(file: Outline, call: ast.Call, _: Told) -> Fix | None:
        node = _operands(call)[position]
        if _is_method(node, "contiguous"):
            return None
        edits = _with(file, node, f"{_atom(file, node)}.contiguous()")
        return Fix(_SLUG, f"Make the {_OPERANDS[position]} dense, which fused kernels need", Safety.SAFE, edits)

    return make


def _mask_type(file: Outline, call: ast.Call, _: Told) -> Fix | None:
    mask, query = given(call, "attn_mask", 3), _operands(call)[0]
    if mask is None or ".to(" in file.segment(mask):
        return None
    edits = _with(file, mask, _reshaped(file, mask, f".to({_atom(file, query)}.dtype)"))
    return Fix(_SLUG, "Give the mask the type of the queries", Safety.SAFE, edits)


_FIXES: tuple[tuple[str, Callable[[Outline, ast.Call, Told], Fix | None]], ...] = (
    ("a mask of three dimensions", _mask_for_all),
    ("three dimensions", _one_head),
    ("five dimensions", _folded),
    ("six dimensions", _folded),
    ("fewer heads of keys", _grouped),
    ("the last dimension of queries", _dense(0)),
    ("the last dimension of keys", _dense(1)),
    ("the last dimension of values", _dense(2)),
    ("a mask of another type", _mask_type),
)


def _operands(call: ast.Call) -> list[ast.expr]:
    found = [given(call, name, position) for position, name in enumerate(_OPERANDS)]
    if any(node is None for node in found):
        raise Refusal("the call's arguments are not written out")
    return [node for node in found if node is not None]


def _with(file: Outline, node: ast.expr, text: str) -> tuple[TextEdit, ...]:
    patch = Patch(file)
    patch.replace(node, text)
    return patch.edits()


def _reshaped(file: Outline, mask: ast.expr, suffix: str) -> str:
    """A mask's text with a method call behind it; None stays None where the mask may be it."""
    if isinstance(mask, ast.IfExp):
        raise Refusal("the mask depends on a condition")
    text = f"{_atom(file, mask)}{suffix}"
    bound = file.lookup(mask) if isinstance(mask, ast.Name) else []
    is_optional = any(binding.value is not None and _is_none(binding.value) for binding in bound)
    return f"None if {file.segment(mask)} is None else {text}" if is_optional else text


def _is_method(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _atom(file: Outline, node: ast.expr) -> str:
    text = file.segment(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, (_NAME,)))
