"""A loop that does one sample after another: all at once, by plain tensors where that is proved, else by `vmap`."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .edits import Patch
from .expressions import stands_alone
from .imports import name_for
from .loops import Loop, loop_at
from .outline import Outline, find, last_name
from .rounds import Refused, Round, Sink, find_inputs, free_name, take_apart
from .scene import fixable, scene, searcher
from .versions import is_older

_SLUG = "python-loop-over-batch"
_ELEMENTWISE = frozenset(
    {"abs", "exp", "log", "sqrt", "rsqrt", "square", "sin", "cos", "tanh", "sigmoid", "relu", "gelu", "silu", "neg"}
    | {"clamp", "clamp_min", "clamp_max", "round", "floor", "ceil", "sign", "reciprocal", "log1p", "expm1", "softplus"}
)


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    loop = loop_at(view) if view is not None else None
    if loop is None or not _computes(loop):
        return None
    place = loop.outline.location(loop.statement, case.location)
    try:
        return Confirmation(place, (_batched(loop, case.device.torch_version),))
    except Refused as refusal:
        return Confirmation(place, message=str(refusal))


def _computes(loop: Loop) -> bool:
    """Whether a round holds something that can be an operator: a call, arithmetic, an index that is written to."""
    for node in loop.walk():
        if isinstance(node, ast.BinOp | ast.AugAssign):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.Call) and last_name(node.func) not in ("append", "len", "print", "isinstance", "range"):
            return True
    return False


def _batched(loop: Loop, torch_version: str) -> Fix:
    """The loop's results computed at once. Raises `Refused`."""
    one, sink = take_apart(loop)
    find_inputs(one)
    patch = Patch(loop.outline)
    plain = _as_elementwise(one)
    if plain is not None:
        _write(patch, sink, plain)
        return Fix(_SLUG, "Compute it for the whole batch at once", Safety.SAFE, patch.edits())
    if is_older(torch_version, (2, 0)):
        raise Refused("torch.vmap, which would run the round for all samples at once, needs torch 2.0")
    vmap = name_for(patch, "torch.vmap")
    _write_vmapped(patch, one, sink, vmap)
    return Fix(_SLUG, "Run the round for all samples at once (torch.vmap)", Safety.UNSAFE, patch.edits())


def _as_elementwise(one: Round) -> str | None:
    """The result's text for the whole tensor, where each element depends on its own place in one tensor alone."""
    file = one.loop.outline
    if one.before or len(one.inputs) != 1 or not _has_length(one):
        return None
    ((name, source),) = one.inputs.items()
    slices = {id(node) for node, text in one.cuts if text == name}
    if len(slices) != len(one.cuts) or not _is_elementwise(file, one.result, slices, name if not one.cuts else ""):
        return None
    return _substituted(file, one.result, [(node, source) for node, _ in one.cuts] or _named(one.result, name, source))


def _has_length(one: Round) -> bool:
    """Whether the loop asks the tensor for its size, so that it is one."""
    text = one.loop.outline.segment(one.loop.iter)
    return any(f"{source}.shape[0]" in text or f"{source}.size(0)" in text for source in one.inputs.values())


def _is_elementwise(file: Outline, node: ast.expr, slices: set[int], name: str) -> bool:
    if id(node) in slices or (isinstance(node, ast.Name) and node.id == name):
        return True
    match node:
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _is_elementwise(file, inner, slices, name)
        case ast.BinOp(left=left, right=right, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow()):
            return _is_elementwise(file, left, slices, name) and _is_elementwise(file, right, slices, name)
        case ast.Call(args=args, keywords=keywords) if last_name(node.func) in _ELEMENTWISE:
            is_function = file.dotted(node.func).startswith("torch.")
            operand = args[:1] if is_function else [getattr(node.func, "value", None)]
            numbers = [*(args[1:] if is_function else args), *(keyword.value for keyword in keywords)]
            return all(isinstance(one, ast.Constant) for one in numbers) and all(
                isinstance(one, ast.expr) and _is_elementwise(file, one, slices, name) for one in operand
            )
        case _:
            return False


def _named(root: ast.AST, name: str, text: str) -> list[tuple[ast.expr, str]]:
    return [(node, text) for node in find(root, ast.Name) if node.id == name]


def _substituted(file: Outline, node: ast.expr | ast.stmt, cuts: list[tuple[ast.expr, str]]) -> str:
    """A node's text with some of its expressions replaced."""
    start, end = file.span(node)
    inside = [(file.span(cut), text) for cut, text in cuts if start <= file.span(cut)[0] and file.span(cut)[1] <= end]
    text = file.text[start:end]
    for (first, last), new in sorted(inside, reverse=True):
        text = text[: first - start] + new + text[last - start :]
    return text


def _write(patch: Patch, sink: Sink, result: str, *, is_call: bool = False) -> None:
    text = sink.template.format(result)
    is_free = is_call or isinstance(sink.replaced, ast.stmt) or stands_alone(patch.outline, sink.replaced)
    patch.replace(sink.replaced, text if is_free else f"({text})")
    patch.delete(sink.deleted)


def _write_vmapped(patch: Patch, one: Round, sink: Sink, vmap: str) -> None:
    file = patch.outline
    names, sources = ", ".join(one.inputs), ", ".join(one.inputs.values())
    result = _substituted(file, one.result, one.cuts)
    if not one.before:
        _write(patch, sink, f"{vmap}(lambda {names}: {result})({sources})", is_call=True)
        return
    function = free_name(file, "one_sample")
    loop = one.loop.node
    assert isinstance(loop, ast.For)
    indent, inner = file.indentation(loop), file.indentation(loop.body[0])
    body = [_substituted(file, statement, one.cuts) for statement in one.before]
    lines = [f"def {function}({names}):", *(inner + text for text in body), f"{inner}return {result}"]
    batched = sink.template.format(f"{vmap}({function})({sources})")
    if sink.replaced is loop:
        lines.append(indent + batched)
    else:
        patch.delete([statement for statement in sink.deleted if statement is not loop])
        patch.replace(sink.replaced, batched)
    patch.replace(loop, "\n".join(lines))


FIXER = Fixer(
    _SLUG,
    _confirm,
    fixable(searcher(_confirm, ("for ",))),
    required=True,
    cure=Cure(re.compile(r"\bvmap\(|repeat_interleave\(")),
)
