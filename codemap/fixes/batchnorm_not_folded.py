"""Batch norms behind convolutions in inference: fold them once, after the weights are loaded."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, Fixer
from .conv_norm import LayerPair, module_classes, pairs_in, sequential_pairs
from .edits import Patch
from .imports import add_import, name_for
from .models import CALL_WORDS, ModelCall, chain_end, model_call
from .outline import Outline, find, last_name
from .resolve import Definition, Resolver, Value
from .scene import scene, searcher
from .versions import is_older

_SLUG = "batchnorm-not-folded"
_FOLD = "torch.nn.utils.fusion.fuse_conv_bn_eval"
_FOLDED = re.compile(r"fuse_conv_bn|fuse_modules|optimization import fuse|optimize_for_inference|fuse_fx")
_PREPARES = (
    "eval",
    "to",
    "cuda",
    "half",
    "bfloat16",
    "float",
    "load_state_dict",
    "requires_grad_",
    "cpu",
    "load_weights",
)
_RISKS = re.compile(r"\.train\(\)|\.train\(True\)|\.backward\(|\.fit\(|GradScaler|torch\.save\(|track_running_stats")
"""What later needs the norms as they were: training, checkpoints, statistics of each batch."""
_TITLE = "Fold the batch norms into the convolutions"


_Groups = list[tuple[Definition | None, list[LayerPair]]]


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    model = model_call(view) if view is not None else None
    if view is None or model is None:
        return None
    construction = model.constructions[0]
    files = {model.outline, construction.outline}
    if any(_FOLDED.search(file.text) for file in files):
        return None
    groups = _pairs(view.resolver, construction)
    is_library = view.resolver.instance_class(construction) is None and not groups
    if not groups and not is_library:
        return None
    ready = _last_preparation(model, construction)
    called = Related("the model runs here", model.outline.location(model.outline.statement(model.call), case.location))
    if ready is None:
        place = construction.outline.location(construction.outline.statement(construction.node), case.location)
        reason = "fold once after eval() and after the weights are loaded: where that is was not found"
        return Confirmation(place, (), (called,), reason)
    file, statement, target = ready
    place = file.location(statement, case.location)
    if is_older(case.device.torch_version, (1, 8)):
        return Confirmation(place, (), (called,), "folding needs PyTorch 1.8")
    fix = _library_fix(file, statement, target) if is_library else _own_fix(view.resolver, ready, groups, files)
    if fix is None:
        return Confirmation(place, (), (called,), "its blocks are made in a file that this one does not import")
    return Confirmation(place, (fix,), (called,))


def _pairs(resolver: Resolver, construction: Value) -> _Groups:
    """Convolutions with norms, by the class or function that holds them; None for a bare `nn.Sequential` model."""
    made = resolver.instance_class(construction)
    if made is None:
        bare = [
            pair
            for call in find(construction.node, ast.Call)
            for pair in sequential_pairs(Value(construction.outline, call))
        ]
        return [(None, bare)] if bare else []
    groups = [(owner, pairs_in(resolver, owner)) for owner in module_classes(resolver, construction)]
    return [(owner, pairs) for owner, pairs in groups if pairs]


_Ready = tuple[Outline, ast.stmt, str]
"""A file, the statement after which the model is ready to run, and how the model is written there."""


def _last_preparation(model: ModelCall, construction: Value) -> _Ready | None:
    """The last statement that prepares the model (`.eval()`, loading, moving) in the block where it is put in eval."""
    home = construction.outline
    chain = chain_end(home, construction.node)
    for file in dict.fromkeys((home, model.outline)):
        for statement in file.statements:
            target = _put_in_eval(file, statement)
            if target is None or not _is_the_model(file, target, statement, model, home, chain):
                continue
            block = file.block(statement)
            later = [one for one in block[block.index(statement) :] if one is statement or _prepares(file, one, target)]
            return file, later[-1], target
    return None


def _put_in_eval(file: Outline, statement: ast.stmt) -> str | None:
    """How the model is written that a statement puts in eval mode: `net.eval()`, `net = Net().to(d).eval()`."""
    value = getattr(statement, "value", None)
    if not isinstance(statement, ast.Assign | ast.Expr) or not isinstance(value, ast.Call):
        return None
    calls = [call for call in find(value, ast.Call) if last_name(call.func) == "eval" and not call.args]
    if not calls or not isinstance(calls[0].func, ast.Attribute):
        return None
    if isinstance(statement, ast.Expr):
        held = calls[0].func.value
        return file.segment(held) if isinstance(held, ast.Name | ast.Attribute) else None
    target = statement.targets[0]
    return (
        file.segment(target) if len(statement.targets) == 1 and isinstance(target, ast.Name | ast.Attribute) else None
    )


def _is_the_model(
    file: Outline, text: str, statement: ast.stmt, model: ModelCall, home: Outline, chain: ast.expr
) -> bool:
    """Whether what is put in eval mode there is the model that was constructed, by its name."""
    if file is model.outline and text == file.segment(model.call.func):
        return True
    made = home.statement(chain)
    targets = made.targets if isinstance(made, ast.Assign) else []
    return (
        file is home
        and any(text == home.segment(target) for target in targets)
        and (file.function(made) is file.function(statement))
    )


def _prepares(file: Outline, statement: ast.stmt, target: str) -> bool:
    """`net.load_state_dict(...)`, `net = net.to(device)`, `load_checkpoint(net, path)`."""
    value = getattr(statement, "value", None)
    if not isinstance(statement, ast.Assign | ast.Expr) or not isinstance(value, ast.Call):
        return False
    if last_name(value.func).startswith("load") and any(file.segment(arg) == target for arg in value.args):
        return True
    return last_name(value.func) in _PREPARES and file.segment(value.func).startswith(f"{target}.")


def _own_fix(resolver: Resolver, ready: _Ready, groups: _Groups, files: set[Outline]) -> Fix | None:
    """A loop over the model's blocks that folds each pair by the names that hold it."""
    file, statement, target = ready
    patch = Patch(file)
    branches = list(_branches(resolver, patch, groups))
    if not branches or None in branches:
        return None
    indent = file.indentation(statement)
    step = "\t" if indent.startswith("\t") else "    "
    lines = [f"for block in list({target}.modules()):  # in eval mode a norm is a part of the convolution before it"]
    for test, body in (branch for branch in branches if branch is not None):
        lines += [f"{step}if {test}:", *(f"{step}{step}{line.replace('    ', step)}" for line in body)]
    _insert_after(patch, statement, lines)
    trains = any(_RISKS.search(one.text) for one in files)
    return Fix(_SLUG, _TITLE, Safety.UNSAFE if trains else Safety.SAFE, patch.edits())


def _branches(resolver: Resolver, patch: Patch, groups: _Groups) -> Iterator[tuple[str, list[str]] | None]:
    """For each kind of block the test that knows it and the lines that fold it; None where it cannot be named."""
    in_sequence = any(not pair.names[0] for _, pairs in groups for pair in pairs)
    nn = name_for(patch, "torch.nn.Identity").rpartition(".")[0]
    home, _, fold = _FOLD.rpartition(".")
    add_import(patch, f"from {home} import {fold}")
    for owner, pairs in groups:
        named = sorted({pair.names for pair in pairs if pair.names[0]})
        if not named:
            continue
        name = _class_name(resolver, patch, owner)
        if name is None:
            yield None
            return
        yield (
            f"isinstance(block, {name})",
            [
                f"block.{conv}, block.{norm} = {fold}(block.{conv}, block.{norm}), {nn}.Identity()"
                for conv, norm in named
            ],
        )
    if in_sequence:
        kinds = sorted(
            {_kind(pair.conv) + "," + _kind(pair.norm) for _, pairs in groups for pair in pairs if not pair.names[0]}
        )
        for kind in kinds:
            conv, norm = kind.split(",")
            yield (
                f"type(block) is {nn}.Sequential",
                [
                    "for i in range(len(block) - 1):",
                    f"    if isinstance(block[i], {nn}.{conv}) and isinstance(block[i + 1], {nn}.{norm}):",
                    f"        block[i], block[i + 1] = {fold}(block[i], block[i + 1]), {nn}.Identity()",
                ],
            )


def _kind(layer: Value) -> str:
    return last_name(layer.node.func) if isinstance(layer.node, ast.Call) else ""


def _class_name(resolver: Resolver, patch: Patch, owner: Definition | None) -> str | None:
    """How this file can name a class: its own, one that it imports, or one of a module that it imports from."""
    if owner is None or not isinstance(owner.node, ast.ClassDef):
        return None
    file, name = patch.outline, owner.node.name
    if owner.outline is file:
        return name if owner.node in file.tree.body else None
    for node in find(file.tree, ast.Name):
        made = resolver.definition(Value(file, node)) if node.id in file.aliases else None
        if made is None or made.outline is not owner.outline:
            continue
        if made.node is owner.node:
            return node.id
        if owner.node in owner.outline.tree.body and name not in file.aliases:
            add_import(patch, f"from {file.aliases[node.id].rpartition('.')[0]} import {name}")
            return name
    return None


def _library_fix(file: Outline, statement: ast.stmt, target: str) -> Fix:
    """Of a library's model the blocks are not known: torch.fx finds the pairs, if it can trace the model."""
    patch = Patch(file)
    add_import(patch, "from torch.fx.experimental.optimization import fuse")
    _insert_after(patch, statement, [f"{target} = fuse({target})"])
    return Fix(f"{_SLUG}/fx", _TITLE, Safety.UNSAFE, patch.edits())


def _insert_after(patch: Patch, statement: ast.stmt, lines: list[str]) -> None:
    """Lines of their own behind a statement, in one piece."""
    file = patch.outline
    joint = file.newline + file.indentation(statement)
    patch.insert_line_after(statement, joint.join(lines))


FIXER = Fixer(_SLUG, _confirm, searcher(_confirm, CALL_WORDS), cure=Cure(_FOLDED, is_elsewhere=True))
