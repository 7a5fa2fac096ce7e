"""Logging, drawing and saving in each step: do it every so many steps."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Safety
from ...analyzer.patterns.work_between_steps import EVERY
from .base import Case, Confirmation, Fixer
from .bindings import FUNCTIONS
from .edits import Patch
from .outline import LOOPS, Outline, find
from .scene import Frame, scene, searcher

_SLUG = "work-between-steps"
_WORDS = ("torch.save", "add_image", "add_figure", "add_histogram", "wandb.log", "save_image", "imwrite", "savefig")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for frame in view.frames:
        for statement in frame.statements:
            loop = _loop(frame.outline, statement)
            if loop is None or not frame.calls():
                continue
            if _is_rare(frame.outline, statement, loop):
                return None
            return _every(frame, statement, loop)
    return None


def _loop(file: Outline, statement: ast.stmt) -> ast.For | ast.AsyncFor | ast.While | None:
    """The innermost loop of the same function that a statement stands in."""
    for above in file.ancestors(statement):
        if isinstance(above, LOOPS):
            return above
        if isinstance(above, (*FUNCTIONS, ast.ClassDef)):
            return None
    return None


def _is_rare(file: Outline, statement: ast.stmt, loop: ast.stmt) -> bool:
    """Whether a condition of the statement, or between it and the loop, counts steps or epochs."""
    for above in (statement, *file.ancestors(statement)):
        if above is loop:
            return False
        if isinstance(above, ast.If) and any(isinstance(node.op, ast.Mod) for node in find(above.test, ast.BinOp)):
            return True
    return False


def _every(frame: Frame, statement: ast.stmt, loop: ast.For | ast.AsyncFor | ast.While) -> Confirmation:
    file = frame.outline
    place = file.location(statement, frame.place)
    if not isinstance(statement, ast.Expr) or not file.indentation(statement):
        return Confirmation(place, message="what is done here gives a value that later code may use")
    counter = _counter(file, loop)
    if counter is None:
        return Confirmation(place, message="the loop counts no steps")
    text = file.segment(statement)
    if any(isinstance(node.value, str) and node.end_lineno != node.lineno for node in find(statement, ast.Constant)):
        return Confirmation(place, message="the statement holds a text of several lines")
    patch = Patch(file)
    inner = file.indentation(statement)
    lines = text.replace("\r\n", "\n").split("\n")
    body = "\n".join([f"{inner}    {lines[0]}", *(f"    {line}" if line.strip() else line for line in lines[1:])])
    patch.replace(statement, f"if {counter} % {EVERY} == 0:\n{body}")
    fix = Fix(_SLUG, f"Do it every {EVERY} steps", Safety.UNSAFE, patch.edits())
    return Confirmation(place, (fix,))


def _counter(file: Outline, loop: ast.For | ast.AsyncFor | ast.While) -> str | None:
    """The name that counts the loop's rounds: of `enumerate`, of `range`, or one that is raised by one in it."""
    if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call):
        iterated = loop.iter
        while (
            file.dotted(iterated.func).startswith("tqdm") and iterated.args and isinstance(iterated.args[0], ast.Call)
        ):
            iterated = iterated.args[0]
        called, target = file.dotted(iterated.func), loop.target
        if called == "range" and isinstance(target, ast.Name):
            return target.id
        if called == "enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
            return target.elts[0].id
    for node in find(loop, ast.AugAssign):
        raised = isinstance(node.op, ast.Add) and isinstance(node.value, ast.Constant) and node.value.value == 1
        if raised and _loop(file, node) is loop and isinstance(node.target, ast.Name | ast.Attribute):
            return file.segment(node.target)
    return None


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, _WORDS))
