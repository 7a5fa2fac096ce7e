"""Casts there and back: weights stored in the type that autocast wants, reductions that widen by themselves."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .bindings import FUNCTIONS, walk_scope
from .edits import Patch
from .imports import name_for
from .models import assigned_target, model_call, only_model_call
from .outline import Outline, last_name
from .parameters import unused_name
from .resolve import Value
from .scene import Scene, scene, searcher
from .uses import Use, use_of

_SLUG = "cast-thrash"
_UP = ("float", "torch.float32", "torch.float")
_DOWN = ("half", "bfloat16", "torch.half", "torch.float16", "torch.bfloat16", "type_as")
_WIDENING = ("softmax", "log_softmax", "sum", "mean", "cumsum", "prod", "nansum")
"""Operators that take a `dtype` to compute in."""
_LAYERS = ("torch.nn.Linear", "torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d")
_STORED = re.compile(r"\.to\(\s*(dtype\s*=\s*)?[\w.]*(bfloat16|float16|half)|\.(half|bfloat16)\(\)")


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    return _there_and_back(view) or _weights(view)


# Activations


def _there_and_back(view: Scene) -> Confirmation | None:
    """A function that casts up and down, at one of its casts."""
    file, case = view.here.outline, view.case
    here = [call for call in view.here.calls() if _direction(file, call)]
    if not here:
        return None
    casts = [
        node
        for node in walk_scope(file.function(here[0]))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _direction(file, node)
    ]
    if {_direction(file, call) for call in casts} != {1, -1}:
        return None
    place = file.location(file.statement(here[0]), case.location)
    up = next(call for call in casts if _direction(file, call) == 1)
    if (fix := _widened(file, up)) is not None and not case.device.is_cpu:
        return Confirmation(place, (fix,))
    if use_of(file, up) is Use.PASSED:
        return Confirmation(
            place, message="what is called in between may need float32: give it weights in half precision"
        )
    if any(_is_conditional(file, call) for call in casts):
        return Confirmation(place, message="a cast is done only for some types: others need it")
    patch = Patch(file)
    for call in casts:
        assert isinstance(call.func, ast.Attribute)
        statement = file.statement(call)
        if isinstance(statement, ast.Assign) and statement.value is call and _is_only(statement, call.func.value):
            patch.delete([statement])  # `x = x.float()`
        else:
            patch.replace_span(file.span(call.func.value)[1], file.span(call)[1], _bracket(file, call))
    return Confirmation(place, (Fix(_SLUG, "Keep one type: drop the casts", Safety.UNSAFE, patch.edits()),))


def _is_conditional(file: Outline, call: ast.Call) -> bool:
    """Whether a cast stands in a branch: what it is for may be what other types cannot do."""
    for above in file.ancestors(call):
        if isinstance(above, (*FUNCTIONS, ast.Module)):
            return False
        if isinstance(above, ast.If | ast.IfExp):
            return True
    return False


def _is_only(statement: ast.Assign, receiver: ast.expr) -> bool:
    return [ast.unparse(target) for target in statement.targets] == [ast.unparse(receiver)]


def _direction(file: Outline, call: ast.Call) -> int:
    """1 for a cast to float32, -1 for one to half precision or to another tensor's type, 0 for another call."""
    if not isinstance(call.func, ast.Attribute):
        return 0
    method = call.func.attr
    if method in ("to", "type"):
        arguments = [*call.args, *(one.value for one in call.keywords if one.arg == "dtype")]
        named = [file.dotted(one) for one in arguments]
        if any(name in _UP for name in named):
            return 1
        return -1 if any(name in _DOWN or name.endswith("dtype") for name in named) else 0
    if method == "float" and not call.args:
        return 1
    return -1 if method in _DOWN else 0


def _widened(file: Outline, up: ast.Call) -> Fix | None:
    """`softmax(x.float(), -1)` as `softmax(x, -1, dtype=torch.float32)`: the kernel widens what it reads."""
    assert isinstance(up.func, ast.Attribute)
    parent = file.parents[up]
    if isinstance(parent, ast.Attribute):
        call = file.parents[parent]
    else:
        call = parent if isinstance(parent, ast.Call) and up in parent.args[:1] else None
    if not isinstance(call, ast.Call) or last_name(call.func) not in _WIDENING:
        return None
    if any(keyword.arg in ("dtype", None) for keyword in call.keywords):
        return None
    if not isinstance(parent, ast.Attribute) and not file.dotted(call.func).startswith("torch."):
        return None
    patch = Patch(file)
    float32 = name_for(patch, "torch.float32")
    patch.replace_span(file.span(up.func.value)[1], file.span(up)[1], _bracket(file, up))
    end = file.span(call)[1] - 1
    has_arguments = bool(call.args or call.keywords)
    trailing = file.text[:end].rstrip().endswith(",")
    patch.insert(end, f"{'' if trailing or not has_arguments else ', '}dtype={float32}")
    return Fix(_SLUG, f"Let {last_name(call.func)} widen by itself (dtype=float32)", Safety.SAFE, patch.edits())


def _bracket(file: Outline, call: ast.Call) -> str:
    """What stays of a cast behind its receiver: a bracket that closes round the receiver, if any."""
    assert isinstance(call.func, ast.Attribute)
    between = file.text[file.span(call.func.value)[1] : file.span(call.func)[1] - len(call.func.attr)]
    return between.rstrip().rstrip(".").rstrip() if ")" in between else ""


# Weights


def _weights(view: Scene) -> Confirmation | None:
    """A model that runs under autocast with float32 weights that nothing trains."""
    cast = _autocast(view)
    if cast is None:
        return None
    model = model_call(view) or (only_model_call(view) if not view.case.callers else None)
    if model is None:
        return None
    # Nearest first: what the called name was given, be it the constructor's result or a builder's.
    made = view.resolver.find(Value(model.outline, model.call.func), lambda one: isinstance(one.node, ast.Call))
    built = made[0] if made else model.constructions[0]
    statement = built.outline.statement(built.node)
    if _is_stored(built.outline.segment(statement)):
        return None
    place = built.outline.location(statement, view.case.location)
    target = assigned_target(built.outline, built.node)
    if target is None or len(made) > 1:
        return Confirmation(place, message="store the weights of its linear and convolution layers in autocast's type")
    name = built.outline.segment(target)
    if _is_stored_behind(built.outline, statement, name):
        return None
    return Confirmation(place, (_stored(built.outline, cast, statement, name),))


def _autocast(view: Scene) -> ast.Call | None:
    """The autocast round the place or one of its callers."""
    for frame in view.frames:
        for statement in frame.statements:
            for above in (statement, *frame.outline.ancestors(statement)):
                contexts = [item.context_expr for item in above.items] if isinstance(above, ast.With) else []
                contexts += getattr(above, "decorator_list", [])
                for context in contexts:
                    if isinstance(context, ast.Call) and last_name(context.func) == "autocast":
                        return context
    return None


def _stored(file: Outline, cast: ast.Call, statement: ast.stmt, name: str) -> Fix:
    patch = Patch(file)
    dtype = name_for(patch, f"torch.{_half_type(cast)}")
    layers = ", ".join(name_for(patch, layer) for layer in _LAYERS)
    module = unused_name(file, statement, ("module", "layer", "submodule"))
    lines = (
        f"for {module} in {name}.modules():  # norms stay in float32",
        f"    if isinstance({module}, ({layers})):",
        f"        {module}.to({dtype})",
    )
    patch.insert_line_after(statement, f"{file.newline}{file.indentation(statement)}".join(lines))
    return Fix(_SLUG, "Store the weights in the type that autocast casts them to", Safety.UNSAFE, patch.edits())


def _half_type(cast: ast.Call) -> str:
    """The type that an autocast asks for; its device's default where it names none."""
    text = ast.unparse(cast)
    if "bfloat16" in text:
        return "bfloat16"
    return "bfloat16" if "cpu" in text and "float16" not in text else "float16"


def _is_stored(text: str) -> bool:
    """Whether a statement already puts the model into half precision."""
    return _STORED.search(text) is not None


def _is_stored_behind(file: Outline, statement: ast.stmt, name: str) -> bool:
    """Whether the block of the construction does so further on."""
    block = file.block(statement)
    later = [file.text[file.span(one)[0] : file.span(one)[1]] for one in block[block.index(statement) + 1 :]]
    return any(name in text and _is_stored(text) for text in later)


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, (".float()", ".half()", "float32)", "model(", "net(", "backbone(", "encoder(")),
    required=True,
    cure=Cure(_STORED, is_elsewhere=True),
)
