"""Many small copies: the whole tensor copied before the loop, or the stack copied instead of its parts."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .bindings import FUNCTIONS
from .edits import Patch
from .loops import Loop, is_batch, is_list, loops_round
from .outline import COMPREHENSIONS, LOOPS, Outline, find, last_name
from .scene import Frame, Scene, fixable, scene, searcher
from .transfers import is_move

_SLUG = "many-small-transfers"
_TO_HOST = ("cpu", "numpy", "tolist")
_MAKERS = ("tensor", "as_tensor", "from_numpy")
_SEVERAL = 3
"""Copies written out in one function that could go together."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu or not any(_copies(frame) for frame in view.frames[:2]):
        return None
    for frame in view.frames:
        for loop in loops_round(frame):
            fix = (_stacked_first(loop) or _copied_before(loop)) if is_batch(loop) else None
            if fix is not None:
                return Confirmation(loop.outline.location(loop.statement, case.location), (fix,))
    if _repeats(view):
        return Confirmation(
            case.location, message="gather them with torch.stack or torch.cat, copy once, and split the copy"
        )
    return None


def _copies(frame: Frame) -> list[ast.Call]:
    """Calls of a frame's statements that copy between host and device."""
    return [call for call in frame.calls() if _is_copy(frame.outline, call)]


def _is_copy(file: Outline, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in _TO_HOST and not call.args:
        return True
    makes = last_name(call.func) in _MAKERS and any(keyword.arg == "device" for keyword in call.keywords)
    return makes or is_move(file, call)


def _repeats(view: Scene) -> bool:
    """Whether a loop runs the copies, here or in a caller, or their function makes several."""
    here = view.here
    if any(_is_in_rounds(here.outline, call) for call in _copies(here)):
        return True
    if any(_is_in_rounds(frame.outline, one) for frame in view.frames[1:] for one in frame.statements):
        return True
    functions = {here.outline.function(statement) for statement in here.statements}
    calls = [call for function in functions for call in here.outline.calls_in(function)]
    return sum(_is_copy(here.outline, call) for call in calls) >= _SEVERAL


def _is_in_rounds(file: Outline, node: ast.AST) -> bool:
    """Whether a loop or a comprehension runs a node in each round (not once, as what it goes through)."""
    child = node
    for above in file.ancestors(node):
        if isinstance(above, COMPREHENSIONS) and not isinstance(child, ast.comprehension):
            return True
        if isinstance(above, LOOPS) and child in above.body:
            return True
        if isinstance(above, FUNCTIONS):
            return False
        child = above
    return False


def _stacked_first(loop: Loop) -> Fix | None:
    """`torch.stack([x.to(device) for x in xs])` becomes `torch.stack([x for x in xs]).to(device)`."""
    file, node = loop.outline, loop.node
    if not isinstance(node, ast.ListComp):
        return None
    copied, call = node.elt, file.parents[node]
    is_joined = isinstance(call, ast.Call) and file.dotted(call.func) in ("torch.stack", "torch.cat", "torch.concat")
    if not is_joined or not isinstance(copied, ast.Call) or not isinstance(copied.func, ast.Attribute):
        return None
    if not _is_copy(file, copied) or copied.func.attr in ("numpy", "tolist") or _reads_target(loop, copied):
        return None
    assert isinstance(call, ast.Call)
    patch = Patch(file)
    method = file.text[file.span(copied.func.value)[1] : file.span(copied)[1]]
    patch.replace_span(file.span(copied.func.value)[1], file.span(copied)[1], "")
    patch.insert(file.span(call)[1], method)
    return Fix(_SLUG, "Join them first and copy once", Safety.UNSAFE, patch.edits())


def _reads_target(loop: Loop, copy: ast.Call) -> bool:
    """Whether a copy's arguments depend on the round."""
    names = {node.id for node in find(loop.target, ast.Name)}
    arguments = [*copy.args, *(keyword.value for keyword in copy.keywords)]
    return any(node.id in names for argument in arguments for node in find(argument, ast.Name))


def _copied_before(loop: Loop) -> Fix | None:
    """`for c in costs: ... c.cpu()` goes through `costs.cpu()`, where the rounds use nothing else of `c`."""
    file = loop.outline
    for name, source in loop.elements().items():
        reads = loop.reads(name)
        copies = [copy for node in reads if (copy := _copy_of(file, node)) is not None]
        if not reads or len(copies) < len(reads) or is_list(file, source):
            continue
        methods = {file.text[file.span(node)[1] : file.span(copy)[1]] for node, copy in zip(reads, copies, strict=True)}
        if len(methods) != 1 or not isinstance(source, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            continue
        # `metric.to(device)` alone moves a module.
        if any(_reads_target(loop, copy) or isinstance(file.parents[copy], ast.Expr) for copy in copies):
            continue
        patch = Patch(file)
        for node, copy in zip(reads, copies, strict=True):
            patch.replace_span(file.span(node)[1], file.span(copy)[1], "")
        patch.insert(file.span(source)[1], methods.pop())
        return Fix(_SLUG, f"Copy {file.segment(source)} once, before the loop", Safety.UNSAFE, patch.edits())
    return None


def _copy_of(file: Outline, node: ast.Name) -> ast.Call | None:
    """The copy that an element goes through at once: `c.cpu()`, `c.detach().cpu()`, `c.to(device)`."""
    current: ast.expr = node
    while True:
        method = file.parents[current]
        call = file.parents[method] if isinstance(method, ast.Attribute) and method.value is current else None
        if not (isinstance(call, ast.Call) and call.func is method):
            return None
        assert isinstance(method, ast.Attribute)
        if method.attr == "cpu" or is_move(file, call):
            return call
        if method.attr != "detach":
            return None
        current = call


FIXER = Fixer(
    _SLUG,
    _confirm,
    fixable(searcher(_confirm, (".cpu()", ".to(", ".cuda("))),
    required=True,
    cure=Cure(re.compile(r"torch\.(stack|cat)\(.*\)\.(cpu|to|cuda)\(|\.cpu\(\)")),
)
