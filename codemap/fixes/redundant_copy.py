"""A copy that nothing needs: read the tensor itself, or copy only the part that is taken."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Fixer
from .edits import Patch
from .fresh import is_fresh
from .outline import Outline, find, last_name
from .resolve import Value
from .scene import Scene, scene, searcher
from .uses import Use, use_of, worst_use

_SLUG = "redundant-copy"
_SAME_MEMORY = ("detach", "view", "reshape", "permute", "transpose", "unsqueeze", "squeeze", "flatten", "contiguous")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for call in view.here.calls():
        if (answer := _part(view, call) or _clone(view, call)) is not None:
            return answer
    return None


def _clone(view: Scene, call: ast.Call) -> Confirmation | None:
    """`x.clone()` and `torch.clone(x)` whose result is only read, of a tensor that nobody writes to meanwhile."""
    file = view.here.outline
    source = _cloned(file, call)
    if source is None:
        return None
    use, root, statement = use_of(file, call), _root(source), file.statement(call)
    if _is_rebound(statement, root):
        return None  # its reads and those of the copy go by one name
    is_new = is_fresh(view.resolver, Value(file, root))
    if use is Use.WRITTEN or (use is Use.KEPT and not is_new) or _is_written_by_called(view, call):
        return None  # the copy keeps the tensor as it is, or was
    if not is_new:
        other = worst_use(file, root) if isinstance(root, ast.Name | ast.Attribute) else Use.WRITTEN
        if other is Use.WRITTEN:
            return None
        # What the tensor is passed to might write to it while a named copy is still wanted.
        use = max(use, Use.PASSED) if other >= Use.PASSED and isinstance(statement, ast.Assign) else use
    patch = Patch(file)
    start, end = file.span(call)
    patch.replace_span(start, end, _unwrapped(file, call, source))
    safety = Safety.SAFE if use is Use.READ or (is_new and use is Use.KEPT) else Safety.UNSAFE
    fix = Fix(_SLUG, "Read the tensor without copying it", safety, patch.edits())
    return Confirmation(file.location(statement, view.case.location), (fix,))


def _is_written_by_called(view: Scene, call: ast.Call) -> bool:
    """Whether the copy goes straight into a function of the workspace that writes to what it is given."""
    file = view.here.outline
    user = file.parents[call]
    if not isinstance(user, ast.Call) or call not in user.args:
        return False
    called = view.resolver.definition(Value(file, user.func))
    if called is None or isinstance(called.node, ast.ClassDef):
        return False
    position = user.args.index(call) + (called.outline.enclosing_class(called.node) is not None)
    given = called.node.args.args[position : position + 1]
    reads = [node for node in find(called.node, ast.Name) if given and node.id == given[0].arg]
    return bool(reads) and worst_use(called.outline, reads[0]) is Use.WRITTEN


def _is_rebound(statement: ast.stmt, root: ast.expr) -> bool:
    """Whether the copy takes the name of what it is made of: `x = x.clone()`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return isinstance(root, ast.Name) and any(last_name(target) == root.id for target in targets)


def _cloned(file: Outline, call: ast.Call) -> ast.expr | None:
    """What a call clones; None if it clones nothing, or into another layout."""
    if call.keywords:
        return None
    if file.dotted(call.func) == "torch.clone":
        return call.args[0] if len(call.args) == 1 else None
    if isinstance(call.func, ast.Attribute) and call.func.attr == "clone" and not call.args:
        return call.func.value
    return None


def _root(source: ast.expr) -> ast.expr:
    """The tensor whose memory is cloned: what the views of it are taken of."""
    while isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr in _SAME_MEMORY:
        source = source.func.value
    while isinstance(source, ast.Subscript):
        source = source.value
    return source


def _unwrapped(file: Outline, call: ast.Call, source: ast.expr) -> str:
    """The text of what is cloned, with the brackets that stand round it."""
    if isinstance(call.func, ast.Attribute) and call.func.value is source:
        start, dot = file.span(call)[0], file.span(call.func)[1] - len(call.func.attr)
        return file.text[start:dot].rstrip().removesuffix(".").rstrip()
    text = file.segment(source)
    return text if isinstance(source, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"


def _part(view: Scene, call: ast.Call) -> Confirmation | None:
    """`x.contiguous()[:, 0]`: the part is taken first, then copied."""
    file = view.here.outline
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "contiguous") or call.args or call.keywords:
        return None
    taken = file.parents[call]
    if isinstance(taken, ast.Attribute) and taken.attr in ("select", "narrow"):
        taken = file.parents[taken]
    elif not (isinstance(taken, ast.Subscript) and taken.value is call and isinstance(taken.ctx, ast.Load)):
        return None
    if not isinstance(taken, ast.Call | ast.Subscript) or _is_dense_later(file, taken):
        return None
    patch = Patch(file)
    dot = file.span(call.func.value)[1]
    method = file.text[dot : file.span(call)[1]]
    if ")" in method.partition(".")[0]:
        return None  # brackets round the receiver
    patch.replace_span(dot, file.span(call)[1], "")
    patch.insert(file.span(taken)[1], method.strip())
    fix = Fix(_SLUG, "Take the part first, then copy it", Safety.SAFE, patch.edits())
    return Confirmation(file.location(file.statement(call), view.case.location), (fix,))


def _is_dense_later(file: Outline, taken: ast.expr) -> bool:
    method = file.parents[taken]
    return isinstance(method, ast.Attribute) and last_name(method) == "contiguous"


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, (".clone(", "torch.clone(", ".contiguous(")), required=True)
