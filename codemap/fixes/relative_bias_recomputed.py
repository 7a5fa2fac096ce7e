"""A relative position bias gathered in `forward`: kept between calls while no gradients are taken."""

from __future__ import annotations

import ast
import builtins
import re

from ...analyzer.findings import Fix, Safety
from .attention_parts import Refusal
from .base import Case, Confirmation, Cure, Fixer
from .edits import Patch
from .imports import name_for
from .outline import Outline, find, last_name
from .scene import Scene, scene, searcher

_SLUG = "relative-bias-recomputed"
_TABLE = re.compile(r"rel|bias|table|pos", re.IGNORECASE)
_KEPT = "kept_bias"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    run = _run(view)
    if run is None:
        return None
    file = view.here.outline
    place = file.location(run[0], case.location)
    try:
        return Confirmation(place, (_fix(file, run),))
    except Refusal as reason:
        return Confirmation(place, (), (), str(reason))


def _run(view: Scene) -> list[ast.stmt] | None:
    """The statements at the place that make the bias and nothing else, in the order of the text."""
    file = view.here.outline
    for function in dict.fromkeys(file.function(statement) for statement in view.here.statements):
        for statement in file.statements:
            if file.function(statement) is not function or not _gathers(file, statement):
                continue
            run = _with_followers(file, statement)
            if any(one in run for one in view.here.statements) and not _is_kept(file, statement):
                return run
    return None


def _gathers(file: Outline, statement: ast.stmt) -> bool:
    """Whether a statement reads a table that the module holds by an index that it holds."""
    if not isinstance(statement, ast.Assign | ast.Return) or statement.value is None:
        return False
    for node in ast.walk(statement.value):
        match node:
            case ast.Subscript(value=ast.Attribute() as table, slice=index) if _is_own(table) and _holds_own(index):
                return bool(_TABLE.search(table.attr))
            case ast.Subscript(value=ast.Name(id=name), slice=index) if _TABLE.search(name) and _holds_own(index):
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=attr), args=[index]) if _TABLE.search(
                attr
            ) and _is_own(index):
                return True
            case _:
                pass
    return False


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and last_name(node.value) == "self"


def _holds_own(index: ast.expr) -> bool:
    """Whether an index is made of the module's own attributes, not of the input."""
    return any(_is_own(node) for node in find(index, ast.Attribute)) and not _foreign(index)


def _foreign(*nodes: ast.AST) -> set[str]:
    """Names that nodes, in their order, read and that neither nodes before, nor the language, nor the module define."""
    foreign: set[str] = set()
    made = {"self", *dir(builtins)}
    for root in nodes:
        names = find(root, ast.Name)
        targets = {node.id for one in find(root, ast.comprehension) for node in find(one.target, ast.Name)}
        inner = targets | {node.arg for node in find(root, ast.arg)}
        foreign |= {node.id for node in names if isinstance(node.ctx, ast.Load)} - made - inner
        made |= {node.id for node in names if isinstance(node.ctx, ast.Store)} - targets
    return foreign


def _with_followers(file: Outline, statement: ast.stmt) -> list[ast.stmt]:
    """The statement and those right behind it that change its result alone."""
    name = _target(statement)
    block = file.block(statement)
    run = [statement]
    for following in block[block.index(statement) + 1 :] if name else ():
        if _target(following) != name or _foreign(following) - {name, *file.aliases}:
            break
        run.append(following)
    return run


def _target(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return ""


def _is_kept(file: Outline, statement: ast.stmt) -> bool:
    """Whether the bias is kept already: it is made under a condition on what was kept."""
    holders = [above for above in file.ancestors(statement) if isinstance(above, ast.If)]
    return any("None" in file.segment(holder.test) or "training" in file.segment(holder.test) for holder in holders)


def _fix(file: Outline, run: list[ast.stmt]) -> Fix:
    first, last = run[0], run[-1]
    owner, function = file.enclosing_class(first), file.function(first)
    maker = next((node for node in owner.body if getattr(node, "name", "") == "__init__"), None) if owner else None
    if owner is None or not isinstance(maker, ast.FunctionDef):
        raise Refusal("the bias is made outside a module")
    if any(node.attr == _KEPT for node in find(owner, ast.Attribute)):
        raise Refusal("the module keeps another bias already")
    foreign = _foreign(*run) - set(file.aliases)
    if foreign:
        raise Refusal(f"the bias depends on {', '.join(sorted(foreign))}")
    name = _target(first) or "bias"
    if not _target(first) and any(node.id == name for node in find(function, ast.Name)):
        raise Refusal("the name bias is taken")
    patch = Patch(file)
    indent = file.indentation(first)
    if not indent:
        raise Refusal("the bias shares its line with another statement")
    enabled = f"{name_for(patch, 'torch.is_grad_enabled')}()"
    step = "\t" if indent.startswith("\t") else "    "
    start, end = file.line_starts[first.lineno - 1], file.span(last)[1]
    body = file.text[start:end].replace("\r\n", "\n")
    if isinstance(first, ast.Return):
        body = body.replace("return ", f"{name} = ", 1)
    lines = [
        f"{indent}{name} = self.{_KEPT}",
        f"{indent}if {name} is None or {enabled}:",
        *(f"{step}{line}" if line.strip() else line for line in body.split("\n")),
    ]
    behind = [f"{indent}{step}self.{_KEPT} = None if {enabled} else {name}"]
    if isinstance(first, ast.Return):
        behind.append(f"{indent}return {name}")
    patch.replace_span(start, end, "\n".join(lines))
    _insert_behind(patch, last, behind)
    patch.insert_line_after(maker.body[-1], f"self.{_KEPT} = None")
    return Fix(_SLUG, "Keep the bias while no gradients are taken", Safety.UNSAFE, patch.edits())


def _insert_behind(patch: Patch, statement: ast.stmt, lines: list[str]) -> None:
    """Lines behind a statement and its end-of-line comment."""
    file = patch.outline
    starts, last = [*file.line_starts, len(file.text)], statement.end_lineno or statement.lineno
    lead = "" if file.text[: starts[last]].endswith("\n") else file.newline
    patch.insert(starts[last], lead + "".join(line + file.newline for line in lines))


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("bias_table", "rel_pos", "relative_position", "relative_bias")),
    required=True,
    cure=Cure(re.compile(rf"\b{_KEPT}\b")),
)
