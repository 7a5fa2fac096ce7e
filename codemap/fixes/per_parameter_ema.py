"""A loop that updates averaged weights tensor by tensor: one multi-tensor update over the same pairs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from ...analyzer.findings import Fix, Safety
from ..workspace import Workspace
from .base import Case, Confirmation, Cure, Fixer
from .blend import Blend, BlendLoop, are_complements, blend_loop
from .edits import Patch
from .imports import name_for
from .outline import Outline, find, last_name
from .parameters import replace_lines, unused_name
from .resolve import Value
from .scene import Scene, scene, searcher
from .settings import argument
from .versions import is_older

_SLUG = "per-parameter-ema"
_TITLE = "Update all averaged tensors together"
_BY_HAND = "the loop does more than blend each tensor into its average"
_WEIGHTS = ("parameters", "named_parameters", "state_dict", "buffers", "named_buffers")
_PARAMETERS = ("parameters", "named_parameters")
_UPDATES = re.compile(r"\.(mul_|lerp_|copy_|add_)\(|\*=|\.data\s*=|\*")
_CAST = re.compile(r"\.(half|bfloat16|double)\(\)|\.to\([^)\n]*(float16|\.half|bfloat16|float64|\.double)\b")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for frame in view.frames[:2]:
        for statement in frame.statements:
            answer = _averaged_model(view, frame.outline, statement) or _of_loop(case, frame.outline, statement)
            if answer is not None:
                return answer
    return None


def _of_loop(case: Case, file: Outline, statement: ast.stmt) -> Confirmation | None:
    """The update that a statement is part of."""
    function = file.function(statement)
    loop = next(
        (
            node
            for node in (statement, *file.ancestors(statement))
            if isinstance(node, ast.For) and file.function(node) is function
        ),
        None,
    )
    if loop is None:
        return None
    place = file.location(statement, case.location)
    found = blend_loop(file, loop)
    if found is None:
        is_update = _calls(loop.iter, _WEIGHTS) and _UPDATES.search(file.segment(statement))
        return Confirmation(place, (), (), _BY_HAND) if is_update and _blends_weights(loop) else None
    if is_older(case.device.torch_version, (2, 0)):
        return Confirmation(place, (), (), "torch._foreach_lerp_ needs PyTorch 2.0")
    fix = _fix(case.workspace, found)
    return Confirmation(place, (fix,)) if fix is not None else Confirmation(place, (), (), _BY_HAND)


def _fix(workspace: Workspace, found: BlendLoop) -> Fix | None:
    """The fix of a loop that only blends; None where other types than floats may be among the tensors."""
    file, blend = found.walk.file, found.blend
    if blend is None or (blend.takes_integers and not _calls(found.loop.iter, _PARAMETERS)):
        return None
    is_lerp = are_complements(file, blend.decay, blend.weight)
    if blend.is_stored and not is_lerp:
        return None
    patch = Patch(file)
    writer = _Writer(found, blend, patch)
    replace_lines(patch, found.loop, writer.stored() if blend.is_stored else writer.in_place(is_lerp), without=None)
    # `lerp` wants both of one type: where a model is cast, the average may be of another.
    safety = Safety.UNSAFE if is_lerp and _casts(workspace) else Safety.SAFE
    return Fix(_SLUG, _TITLE, safety, patch.edits())


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the statements that take a loop's place."""

    found: BlendLoop
    blend: Blend
    patch: Patch

    def in_place(self, is_lerp: bool) -> list[str]:
        """One update of all averages where they lie."""
        pairs = self._unused("pairs", "ema_pairs")
        lines = self._gathered(pairs, f"({self.found.text(self.blend.ema)}, {self.found.text(self.blend.new)})")
        averages, others = f"[old for old, _ in {pairs}]", f"[new for _, new in {pairs}]"
        weight = self._segment(self.blend.weight)
        if is_lerp:
            return [*lines, f"{self._name('_foreach_lerp_')}({averages}, {others}, {weight})"]
        name = self._unused("averages", "averaged_tensors")
        return [
            *lines,
            f"{name} = {averages}",
            f"{self._name('_foreach_mul_')}({name}, {self._segment(self.blend.decay)})",
            f"{self._name('_foreach_add_')}({name}, {others}, alpha={weight})",
        ]

    def stored(self) -> list[str]:
        """New tensors for all averages, stored under their keys."""
        held = self.blend.ema
        assert isinstance(held, ast.Subscript)
        triples, blended = self._unused("averaged", "to_average"), self._unused("blended", "new_averages")
        key, store = self._segment(held.slice), self._segment(held.value)
        tensors = f"({key}, {self.found.text(held)}, {self.found.text(self.blend.new)})"
        averages, others = f"[old for _, old, _ in {triples}]", f"[new for _, _, new in {triples}]"
        return [
            *self._gathered(triples, tensors),
            f"{blended} = {self._name('_foreach_lerp')}({averages}, {others}, {self._segment(self.blend.weight)})",
            f"for (key, _, _), value in zip({triples}, {blended}):",
            f"    {store}[key] = value",
        ]

    def _gathered(self, name: str, element: str) -> list[str]:
        walk = replace(self.found.walk, conditions=tuple(self.found.conditions))
        return walk.gathered_lines(name, element, len(walk.file.indentation(self.found.loop)))

    def _segment(self, node: ast.expr) -> str:
        return self.found.walk.file.segment(node)

    def _name(self, function: str) -> str:
        return name_for(self.patch, f"torch.{function}")

    def _unused(self, *names: str) -> str:
        return unused_name(self.found.walk.file, self.found.loop, names)


def _averaged_model(view: Scene, file: Outline, statement: ast.stmt) -> Confirmation | None:
    """`averaged.update_parameters(model)` of an `AveragedModel` that was given an `avg_fn`, which goes one by one."""
    for call in find(statement, ast.Call):
        if last_name(call.func) != "update_parameters" or not isinstance(call.func, ast.Attribute):
            continue
        for made in view.resolver.find(Value(file, call.func.value), _is_averaged_model):
            averaging = argument(view.resolver, made, "avg_fn").value
            if averaging is None or argument(view.resolver, made, "multi_avg_fn").value is not None:
                continue
            place = made.outline.location(made.node, view.case.location)
            fix = _multi_averaging(made, averaging)
            if fix is None:
                return Confirmation(place, (), (), "its avg_fn is called per tensor: give a multi_avg_fn instead")
            return Confirmation(place, (fix,))
    return None


def _is_averaged_model(value: Value) -> bool:
    return isinstance(value.node, ast.Call) and last_name(value.node.func) == "AveragedModel"


def _multi_averaging(made: Value, averaging: Value) -> Fix | None:
    """`avg_fn=get_ema_avg_fn(d)` becomes `multi_avg_fn=get_ema_multi_avg_fn(d)`."""
    call = averaging.node
    if not (
        isinstance(call, ast.Call) and last_name(call.func) == "get_ema_avg_fn" and isinstance(made.node, ast.Call)
    ):
        return None
    file, patch = made.outline, Patch(made.outline)
    keyword = next((one for one in made.node.keywords if one.value is call), None)
    if averaging.outline is not file or keyword is None:
        return None
    start = file.offset(keyword.lineno, keyword.col_offset)
    factory = name_for(patch, "torch.optim.swa_utils.get_ema_multi_avg_fn")
    patch.replace_span(start, file.span(call.func)[1], f"multi_avg_fn={factory}")
    return Fix(f"{_SLUG}/averaged-model", "Average all parameters together", Safety.SAFE, patch.edits())


def _calls(node: ast.AST, names: tuple[str, ...]) -> bool:
    return any(last_name(call.func) in names for call in find(node, ast.Call))


def _blends_weights(loop: ast.For) -> bool:
    """Whether a loop multiplies other tensors than gradients: one that only copies them blends nothing."""
    if any(node.attr == "grad" for node in find(loop, ast.Attribute)):
        return False
    multiplies = any(isinstance(node.op, ast.Mult) for node in (*find(loop, ast.BinOp), *find(loop, ast.AugAssign)))
    return multiplies or _calls(loop, ("mul_", "mul", "lerp_", "lerp"))


def _casts(workspace: Workspace) -> bool:
    """Whether some file gives a tensor or a model another floating type."""
    return any(_CAST.search(workspace.text(path) or "") for path in workspace.paths())


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, (".mul_(", ".lerp_(", ".copy_(", ".data = ", "update_parameters(", "*= ")),
    required=True,
    cure=Cure(re.compile(r"_foreach_lerp|_foreach_add_|get_ema_multi_avg_fn")),
)
