"""A model that the host cannot launch fast enough: compile it into a CUDA graph."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, DeviceFacts, Fixer
from .edits import Patch
from .imports import name_for
from .models import assigned_target, chain_end, model_call
from .outline import Outline, last_name
from .resolve import Value
from .scene import scene, searcher
from .versions import is_older

_SLUG = "launch-bound"


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    model = model_call(view) if view is not None and not case.device.is_cpu else None
    if model is None:
        return None
    construction = model.constructions[0]
    file = construction.outline
    chain = chain_end(file, construction.node)
    target = assigned_target(file, chain)
    if _is_compiled(file, chain, target) or _is_compiled(model.outline, model.call.func, model.call.func):
        return None
    place = file.location(file.statement(construction.node), case.location)
    called = model.outline.location(model.outline.statement(model.call), case.location)
    related = (Related("the call that launches its kernels", called),)
    if is_older(case.device.torch_version, (2, 0)):
        return Confirmation(place, (), related, "torch.compile needs PyTorch 2.0")
    return Confirmation(place, (_fix(Value(file, chain), target, case.device),), related)


def _fix(chain: Value, target: ast.expr | None, device: DeviceFacts) -> Fix:
    patch = Patch(chain.outline)
    text = chain.outline.segment(chain.node)
    title = 'Compile the model (torch.compile, mode="reduce-overhead")'
    if target is not None and not is_older(device.torch_version, (2, 2)):
        # In place: the names in checkpoints stay as they are, as they would not under a wrapper.
        name = chain.outline.segment(target)
        patch.insert_line_after(chain.outline.statement(chain.node), f'{name}.compile(mode="reduce-overhead")')
    else:
        patch.replace(chain.node, f'{name_for(patch, "torch.compile")}({text}, mode="reduce-overhead")')
    return Fix(_SLUG, title, Safety.UNSAFE, patch.edits())


def _is_compiled(file: Outline, chain: ast.expr, target: ast.expr | None) -> bool:
    if any(isinstance(above, ast.Call) and last_name(above.func) == "compile" for above in file.ancestors(chain)):
        return True
    name = last_name(target) if target is not None else ""
    for call in file.calls("compile"):
        of = [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
        if name and name in map(last_name, of):
            return True
    return False


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, ("model(", "net(", "backbone(", "encoder(", "network(")))
