"""Attention written out as three passes: one call of `scaled_dot_product_attention`."""

from __future__ import annotations

import ast
import re

from libcst import ParserSyntaxError

from ...analyzer.findings import Fix, Related, Safety
from .attention import read_attention
from .attention_parts import Attention, Mask, MaskKind, Needed, Refusal, find_module, is_softmax, swaps_last
from .base import Case, Confirmation, Cure, DeviceFacts, Fixer
from .calls import parse
from .edits import Patch
from .einsum import axis_order, rearranged
from .imports import name_for
from .outline import Outline, find, last_name
from .resolve import Resolver, Value
from .scene import Scene, scene, searcher
from .second_result import drops_second
from .versions import is_older

_SLUG = "unfused-attention"
_COPYING = ("contiguous", "reshape", "flatten", "clone")
_WIDE = 110
_ONE_HEAD, _NO_HEAD = ".unsqueeze(1)", ".squeeze(1)"
"""No fused kernel takes three dimensions: PyTorch falls back to separate passes. One head makes it four."""
_MASK_FOR_ONE_HEAD = ".unsqueeze(-3)"
"""Counted from the end, as a mask may have two dimensions."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    refused: Confirmation | None = None
    for softmax in _softmaxes(view):
        try:
            found = read_attention(file, softmax)
        except Refusal as reason:
            refused = refused or _refused(view, softmax, reason)
            continue
        except LookupError:
            continue
        if not any(_takes_part(file, found, statement) for statement in view.here.statements):
            continue
        return _confirmation(view, found)
    return refused


def _takes_part(file: Outline, found: Attention, statement: ast.stmt) -> bool:
    return any(one in found.statements for one in (statement, file.parents[statement]))


def _softmaxes(view: Scene) -> list[ast.Call]:
    """Softmax calls of the function at the place: those in its own statements first, then by distance."""
    file, place = view.here.outline, view.case.location.line
    functions = dict.fromkeys(file.function(statement) for statement in view.here.statements)
    calls = [call for function in functions for call in file.calls_in(function) if is_softmax(file, call)]
    return sorted(calls, key=lambda call: abs(call.lineno - place))


def _refused(view: Scene, softmax: ast.Call, reason: Refusal) -> Confirmation | None:
    """Attention that must stay: confirmed where the place is the softmax's own neighbourhood."""
    file = view.here.outline
    block = file.block(file.statement(softmax))
    if not any(statement in block for statement in view.here.statements):
        return None
    return Confirmation(view.case.location, (), (), str(reason), _is_needed(view, reason))


def _is_needed(view: Scene, reason: Refusal) -> bool:
    """Whether the weights themselves are wanted: read here, or returned to a caller that doesn't drop them."""
    if not isinstance(reason, Needed):
        return False
    callers = view.frames[1:2]
    return not any(drops_second(frame.outline, call) for frame in callers for call in frame.calls())


def _confirmation(view: Scene, found: Attention) -> Confirmation:
    file, like = found.outline, view.case.location
    place = file.location(found.statements[0], like)
    last = file.location(found.statements[-1], like)
    related = () if last.line == place.line else (Related("the product with the weights", last),)
    if is_older(view.case.device.torch_version, (2, 0)):
        return Confirmation(place, (), related, "scaled_dot_product_attention needs PyTorch 2.0")
    try:
        fix = _fix(view.resolver, found, view.case.device)
    except Refusal as reason:
        return Confirmation(place, (), related, str(reason), _is_needed(view, reason))
    return Confirmation(place, (fix,), related)


def _fix(resolver: Resolver, found: Attention, device: DeviceFacts) -> Fix:
    file = found.outline
    assert found.q is not None and found.k is not None and found.v is not None and found.product is not None
    _check_names(found)
    patch = Patch(file)
    q, k, v, shape = _operands(found)
    scale, is_proved = _scale(resolver, found)
    arguments = {
        "attn_mask": _mask(file, found.masks, _MASK_FOR_ONE_HEAD if found.is_three_dimensional else ""),
        "dropout_p": _dropout(file, found.dropout),
        "scale": scale,
    }
    if is_older(device.torch_version, (2, 1)):
        raise Refusal("the scale argument of scaled_dot_product_attention needs PyTorch 2.1")
    is_exact = is_proved and not any(mask.kind is MaskKind.FILLED_FINITE for mask in found.masks)
    if found.is_three_dimensional:
        operands = [f"{text}{_ONE_HEAD}" for text in (q, k, v)]
    else:
        operands = [_bare(file, text, node) for text, node in ((q, found.q), (k, found.k), (v, found.v))]
    passed = [*operands, *(f"{name}={text}" for name, text in arguments.items() if text)]
    name = name_for(patch, "torch.nn.functional.scaled_dot_product_attention")
    start, end = _with_brackets(file, found.product)
    call = _call_text(file, start, name, passed)
    text = shape(f"{call}{_NO_HEAD}" if found.is_three_dimensional else call)
    if _is_viewed(file, found.product, 3 if found.is_three_dimensional else 4):
        text += ".contiguous()"  # the fused call leaves the heads behind the tokens; a product has them as they read
    try:
        parse(text)
    except ParserSyntaxError as error:
        raise Refusal("its parts are no arguments as they stand") from error
    patch.replace_span(start, end, text)
    patch.delete([one for one in found.statements if one is not file.statement(found.product)])
    safety = Safety.SAFE if is_exact else Safety.UNSAFE
    return Fix(_SLUG, "Use scaled_dot_product_attention", safety, patch.edits())


def _operands(found: Attention):
    """Texts of q, k and v as the fused call takes them, and what to do with its result."""
    file = found.outline
    assert found.q is not None and found.k is not None and found.v is not None
    q, k, v = (_atom(file, node) for node in (found.q, found.k, found.v))
    if found.logits_equation is not None:
        order = axis_order(found.logits_equation, found.product_equation)
        if order is None:
            raise Refusal("an einsum equation that is no plain attention")
        if len(order.q) > 4:
            raise Refusal("no fused kernel takes tensors of more than four dimensions: fold them into the batch first")
        result = lambda text: rearranged(text, order.out)  # noqa: E731
        return rearranged(q, order.q), rearranged(k, order.k), rearranged(v, order.v), result
    if found.product_equation is not None:
        raise Refusal("one product is an einsum, the other is not")
    k = _untransposed(file, found.k)
    if found.is_transposed:
        v = _untransposed(file, found.v)
        return q, k, v, lambda text: f"{text}.transpose(-2, -1)"
    return q, k, v, lambda text: text


def _untransposed(file: Outline, node: ast.expr) -> str:
    """The text of an operand with its last two dimensions swapped: without its `.transpose(-2, -1)` if it has one."""
    if swaps_last(node):
        inner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        inner = node.value if isinstance(node, ast.Attribute) else inner
        if inner is not None:
            return _atom(file, inner)
    return f"{_atom(file, node)}.transpose(-2, -1)"


def _scale(resolver: Resolver, found: Attention) -> tuple[str, bool]:
    """The text of the scale and whether it is known to be a plain number, as the call demands."""
    if not found.scales:
        return "1.0", True
    file = found.outline
    factors, is_proved = [], True
    for scale in found.scales:
        proof = _is_number(resolver, Value(file, scale.node))
        if proof is False:
            raise Refusal("the logits are scaled by a tensor")
        is_proved = is_proved and proof is True
        text = file.segment(scale.node)
        if scale.is_divisor:
            text = f"1.0 / {_factor(file, scale.node)}"
        factors.append(text if len(found.scales) == 1 else f"({text})" if not text.isidentifier() else text)
    return " * ".join(factors), is_proved


def _is_number(resolver: Resolver, value: Value) -> bool | None:
    """Whether a scale is a Python number: True, False for a tensor, None if it cannot be told."""
    node = value.node
    match node:
        case ast.Constant(value=constant):
            return None if constant is None else isinstance(constant, int | float)
        case ast.UnaryOp():
            return _is_number(resolver, Value(value.outline, node.operand))
        case ast.BinOp():
            sides = [_is_number(resolver, Value(value.outline, side)) for side in (node.left, node.right)]
            return False if False in sides else (None if None in sides else True)
        case ast.BoolOp():
            known = [_is_number(resolver, Value(value.outline, part)) for part in node.values]
            return False if False in known else (True if True in known else None)
        case ast.Call():
            name = value.outline.dotted(node.func)
            if name.startswith(("math.", "numpy.", "np.")) or name in ("float", "int", "len", "pow", "sqrt"):
                return True
            return False if name.startswith("torch.") or last_name(node.func) in ("exp", "Parameter") else None
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
    if isinstance(node, ast.Name) and _is_shape_name(value):
        return True
    if isinstance(node, ast.Name | ast.Attribute):
        sources = [one for one in resolver.find(value, _is_scale_source) if one.node is not node]
        known = [_is_number(resolver, one) for one in sources]
        if False in known:
            return False
        if True in known:
            return True
        # A size: `self.head_dim` and the like are numbers however they were made.
        return True if last_name(node).endswith(("dim", "head_dim", "d_k", "dim_head", "head_size")) else None
    return None


def _is_scale_source(value: Value) -> bool:
    return isinstance(value.node, ast.Constant | ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Call)


def _is_shape_name(value: Value) -> bool:
    """`b, n, d = x.shape` and `d = x.size(-1)`."""
    assert isinstance(value.node, ast.Name)
    return any(
        binding.value is not None
        and (last_name(binding.value) == "shape" or "size" in last_name(getattr(binding.value, "func", binding.value)))
        for binding in value.outline.lookup(value.node)
    )


def _mask(file: Outline, masks: list[Mask], reshape: str = "") -> str:
    """The text of `attn_mask`, or "" if there is none; `reshape` is called on the mask."""
    added = [mask for mask in masks if mask.kind is MaskKind.ADDED]
    filled = [mask for mask in masks if mask.kind is not MaskKind.ADDED]
    if added and filled:
        raise Refusal("one mask is added, another filled")
    if len(filled) > 1 or (len(added) > 1 and any(mask.optional for mask in added)):
        raise Refusal("several masks")
    if added:
        text = " + ".join(file.segment(mask.node) for mask in reversed(added))
        if reshape:
            text = (_atom(file, added[0].node) if len(added) == 1 else f"({text})") + reshape
        optional = added[0].optional
        return f"None if {optional} is None else {text}" if optional not in ("", text) else text
    if not filled:
        return ""
    mask = filled[0]
    text = _atom(file, mask.node) if mask.kind is MaskKind.KEPT else _negated(file, mask.node)
    if reshape:
        text = (text if mask.kind is MaskKind.KEPT else f"({text})") + reshape
    return f"None if {mask.optional} is None else {text}" if mask.optional else text


def _negated(file: Outline, node: ast.expr) -> str:
    """The opposite of a mask, written the shortest way."""
    match node:
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return _atom(file, inner)
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return f"{file.segment(left)} != {file.segment(right)}"
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]):
            return f"{file.segment(left)} == {file.segment(right)}"
        case ast.Call(func=ast.Attribute(value=inner, attr="logical_not")):
            return _atom(file, inner)
        case _:
            return f"~{_atom(file, node)}"


def _dropout(file: Outline, call: ast.Call | None) -> str:
    """The text of `dropout_p`, or "" without dropout."""
    if call is None:
        return ""
    if last_name(call.func) == "dropout" and file.dotted(call.func).startswith("torch."):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        given.update(zip(("input", "p", "training"), call.args, strict=False))
        rate = _factor(file, given["p"]) if "p" in given else "0.5"
        if "training" not in given:
            return rate
        return f"{rate} if {file.segment(given['training'])} else 0.0"
    module = file.segment(call.func)
    made = find_module(file, call.func, ("Dropout",))
    if made is None:
        raise Refusal("the dropout between softmax and product is not known to be nn.Dropout")
    conditional = isinstance(file.parents[made], ast.IfExp)
    rate = f'getattr({module}, "p", 0.0)' if conditional else f"{module}.p"
    return f"{rate} if {module}.training else 0.0"


def _check_names(found: Attention) -> None:
    """What the fused call reads must still hold the same where it stands, behind the statements that go."""
    file = found.outline
    operands = [found.q, found.k, *(mask.node for mask in found.masks), *(scale.node for scale in found.scales)]
    first, last = found.statements[0], file.statement(found.product) if found.product else found.statements[-1]
    read: set[str] = {mask.optional for mask in found.masks}
    for operand in operands:
        names = {node.id for node in find(operand, ast.Name)} if operand is not None else set[str]()
        read |= names
        start = file.statement(operand) if operand is not None else first
        for statement in file.block(first):
            if statement not in found.statements and start.lineno < statement.lineno < last.lineno:
                stored = {node.id for node in find(statement, ast.Name) if isinstance(node.ctx, ast.Store)}
                if stored & names:
                    raise Refusal("an operand is changed between the products")
    if found.names & read:
        raise Refusal("the logits enter the mask or the scale")
    own = {id(node) for statement in found.statements for node in ast.walk(statement)}
    start = (first.lineno, first.col_offset)
    in_loop = any(isinstance(above, ast.For | ast.While) for above in file.ancestors(first))
    for node in find(file.function(first), ast.Name):
        if node.id in found.names and isinstance(node.ctx, ast.Load) and id(node) not in own:
            before = (node.lineno, node.col_offset) < start
            if (before and in_loop) or (not before and not _is_redefined(file, node, last)):
                raise Needed("the attention weights are used elsewhere")
    for statement in found.statements:
        if statement is not last and not _stands_alone(file, statement):
            raise Refusal("a statement of the attention shares its line with another")


def _is_viewed(file: Outline, product: ast.expr, rank: int) -> bool:
    """Whether a product's result goes into a `view` that joins dimensions, at once or by the name it is given."""
    if _meets_view(file, product, rank):
        return True
    statement = file.statement(product)
    if not isinstance(statement, ast.Assign) or statement.value is not product:
        return False
    end = (statement.end_lineno or 0, statement.end_col_offset or 0)
    names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    used = [node for node in find(file.function(statement), ast.Name) if node.id in names]
    later = [node for node in used if (node.lineno, node.col_offset) > end]
    given = [node.lineno for node in later if isinstance(node.ctx, ast.Store)]
    return any(
        isinstance(node.ctx, ast.Load)
        and not any(line < node.lineno for line in given)
        and _meets_view(file, node, rank)
        for node in later
    )


def _meets_view(file: Outline, node: ast.expr, rank: int) -> bool:
    """Whether the methods called on an expression come to such a `view` before any that copies."""
    above = file.parents[node]
    while isinstance(above, ast.Attribute):
        call = file.parents[above]
        if above.attr in ("view", "view_as"):
            return not (isinstance(call, ast.Call) and len(call.args) > rank)  # more sizes only part a dimension
        if above.attr in _COPYING or not isinstance(call, ast.Call):
            return False
        above = file.parents[call]
    return False


def _is_redefined(file: Outline, use: ast.Name, last: ast.stmt) -> bool:
    """Whether a name is given a new value between the attention and this use of it (by it, at the latest)."""
    return any(
        isinstance(node.ctx, ast.Store)
        and node.id == use.id
        and (node.lineno, node.col_offset) >= (last.lineno, last.col_offset)
        and node.lineno < use.lineno
        for node in find(file.function(use), ast.Name)
    )


def _stands_alone(file: Outline, statement: ast.stmt) -> bool:
    start, end = file.span(statement)
    line_start = file.line_starts[statement.lineno - 1]
    rest = file.text[end:].partition("\n")[0].strip()
    return not file.text[line_start:start].strip() and (not rest or rest.startswith("#"))


def _with_brackets(file: Outline, node: ast.expr) -> tuple[int, int]:
    """A product's span, with the brackets that group it: `(attn @ v).transpose(1, 2)` needs none round a call."""
    start, end = file.span(node)
    if isinstance(node, ast.BinOp) and isinstance(file.parents[node], ast.Attribute | ast.BinOp | ast.Assign):
        left = len(file.text[:start].rstrip())
        right = end + len(file.text[end:]) - len(file.text[end:].lstrip())
        if file.text[left - 1 : left] == "(" and file.text[right : right + 1] == ")":
            return left - 1, right + 1
    return start, end


def _call_text(file: Outline, start: int, name: str, passed: list[str]) -> str:
    line, column = file.position(start)
    text = f"{name}({', '.join(passed)})"
    if column + len(text) <= _WIDE:
        return text
    held = file.file.lines[line - 1]
    indent = held[: len(held) - len(held.lstrip())]
    step = "\t" if indent.startswith("\t") else "    "
    between = ", " if len(indent + step + ", ".join(passed)) <= _WIDE else f",\n{indent}{step}"
    return f"{name}(\n{indent}{step}{between.join(passed)}{',' if chr(10) in between else ''}\n{indent})"


def _atom(file: Outline, node: ast.expr) -> str:
    """A node's text, in brackets unless an attribute or operator can follow it."""
    text = file.segment(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant) else f"({text})"


def _bare(file: Outline, text: str, node: ast.expr) -> str:
    """An operand's text as an argument: without the brackets that only an attribute behind it would need."""
    inner = file.segment(node)
    return inner if text == f"({inner})" else text


def _factor(file: Outline, node: ast.expr) -> str:
    """A node's text as an operand of a division or a condition."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return file.segment(node)
    return _atom(file, node)


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("softmax",)),
    cure=Cure(re.compile(r"\bscaled_dot_product_attention\b")),
)
