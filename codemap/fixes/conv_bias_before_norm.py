"""A bias that the batch norm behind takes away: `bias=False` where the convolution is made."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from ..workspace import Workspace
from .base import Case, Confirmation, Cure, Fixer
from .calls import edit_call
from .conv_norm import LayerPair, pairs_in, sequential_pairs
from .edits import Patch
from .layers import CONVOLUTIONS, callers_of, given_to, is_opaque, layers_behind
from .outline import Outline
from .resolve import Definition, Resolver, Value
from .scene import Scene, scene, searcher

_SLUG = "conv-bias-before-norm"
_LOADS = re.compile(
    r"load_state_dict|torch\.load\(|load_from_checkpoint|from_pretrained|pretrained\s*=\s*True|load_model|safetensors"
)
_SEEDS = re.compile(r"manual_seed|seed_everything|set_seed|seed_all")
_TOUCHES = re.compile(r"(?<!self)\.bias\b")
_ASKS = re.compile(r"bias\s+is\s+not\s+None|hasattr\([^)]*bias|if\s+[\w.]+\.bias\b\s*:")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    for call in view.here.calls():
        pairs = [pair for pair in _pairs_behind(view, call) if _has_bias(view.resolver, pair.conv) is not False]
        if pairs:
            return _confirmation(view, pairs)
    return None


def _pairs_behind(view: Scene, call: ast.Call) -> list[LayerPair]:
    """The pairs that a call runs: one by its attribute, or those in the `nn.Sequential` that it runs."""
    file, resolver = view.here.outline, view.resolver
    found: list[LayerPair] = []
    owner = file.enclosing_class(call)
    if owner is not None and isinstance(call.func, ast.Attribute):
        named = call.func.attr
        found += [pair for pair in pairs_in(resolver, Definition(file, owner)) if named in pair.names]
    called = Value(file, call.func)
    for made in layers_behind(resolver, called, ("Sequential",)):
        found += sequential_pairs(made)
    if not found:
        for made in resolver.find(called, lambda one: resolver.instance_class(one) is not None):
            block = resolver.instance_class(made)
            found += [pair for pair in pairs_in(resolver, block) if not pair.names[0]] if block is not None else []
    return found


def _has_bias(resolver: Resolver, conv: Value) -> bool | None:
    """Whether a constructor asks for a bias, if only by saying nothing; None where the text does not tell."""
    given = given_to(resolver, conv, "bias")
    if given is None:
        return None if is_opaque(conv) else True
    return bool(given.node.value) if isinstance(given.node, ast.Constant) else None


def _confirmation(view: Scene, pairs: list[LayerPair]) -> Confirmation | None:
    like = view.case.location
    certain = [pair for pair in pairs if _has_bias(view.resolver, pair.conv)]
    first = (certain or pairs)[0].conv
    place = first.outline.location(first.node, like)
    norm = (certain or pairs)[0].norm
    related = (Related("the batch norm", norm.outline.location(norm.outline.statement(norm.node), like)),)
    if not certain:
        return Confirmation(place, (), related, "whether it has a bias is decided elsewhere: pass bias=False there")
    if _is_shared(first):
        return Confirmation(place, (), related, "the constructor also makes convolutions with no norm behind them")
    texts = _texts(view.case.workspace)
    if any(_TOUCHES.search(text) and not _ASKS.search(text) for text in texts):
        return Confirmation(place, (), related, "code that sets or reads `.bias` would find None")
    patches: dict[str, Patch] = {}
    for conv in {pair.conv.node: pair.conv for pair in certain}.values():
        patch = patches.setdefault(conv.outline.path, Patch(conv.outline))
        text = conv.outline.segment(conv.node)
        patch.replace(conv.node, edit_call(text, {"bias": "False"}, column=conv.node.col_offset))
    risky = any(pattern.search(text) for text in texts for pattern in (_LOADS, _SEEDS, _TOUCHES))
    edits = tuple(edit for patch in patches.values() for edit in patch.edits())
    title = "Make the convolution without bias" if len(certain) == 1 else "Make the convolutions without bias"
    return Confirmation(place, (Fix(_SLUG, title, Safety.UNSAFE if risky else Safety.SAFE, edits),), related)


def _is_shared(conv: Value) -> bool:
    """Whether a helper's `return nn.Conv2d(...)` makes it, which other callers may use without a norm."""
    statement = conv.outline.statement(conv.node)
    return isinstance(statement, ast.Return) and statement.value is conv.node


def _texts(workspace: Workspace) -> list[str]:
    return [text for path in workspace.paths() if (text := workspace.text(path)) is not None and "torch" in text]


def _called(file: Outline) -> list[str]:
    """How a file calls its convolutions, and what may hold some."""
    own = [node.name for node in file.statements if isinstance(node, ast.ClassDef)]
    return callers_of(file, (*CONVOLUTIONS, "Sequential", *own))


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("BatchNorm",), _called),
    cure=Cure(re.compile(r"bias\s*=\s*False"), is_elsewhere=True),
)
