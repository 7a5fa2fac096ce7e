"""Finding where a model is wrapped in DistributedDataParallel, and setting what it is given there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation
from .calls import edit_call
from .edits import Patch
from .outline import last_name, outline
from .resolve import Resolver, Value
from .scene import Scene, scene
from .settings import Argument, argument, constants

WORDS = ("DistributedDataParallel", "DDP")
"""What the text of a statement that wraps a model holds."""
_TORCH = "torch.nn.parallel."
_WRAPPERS = frozenset({"DistributedDataParallel", "DDP", "MMDistributedDataParallel"})
_STRATEGIES = frozenset({"DDPStrategy", "DDPPlugin", "DistributedDataParallelKwargs"})
"""What frameworks are told to give to the wrapper: their keywords are its keywords."""
_POSITIONS = {
    "broadcast_buffers": 4,
    "find_unused_parameters": 7,
    "gradient_as_bucket_view": 9,
}


def is_wrapper(value: Value) -> bool:
    """Whether an expression wraps a model in torch's DistributedDataParallel, or configures who will."""
    if not isinstance(value.node, ast.Call):
        return False
    dotted, name = value.outline.dotted(value.node.func), last_name(value.node.func)
    if dotted.startswith(("apex.", "deepspeed.", "fairscale.", "torch.distributed.fsdp")):
        return False
    return name in _WRAPPERS | _STRATEGIES or (
        dotted.startswith(_TORCH) and dotted.endswith(".DistributedDataParallel")
    )


def wrappers(view: Scene) -> list[Value]:
    """The calls that wrap the model used at the place: those in its own statements, those that what it calls comes
    from; else all of the workspace."""
    own = [value for value in view.here.values() if is_wrapper(value)]
    if own:
        return own
    found: dict[ast.AST, Value] = {}
    for frame in view.frames:
        for call in frame.calls():
            for value in view.resolver.find(Value(frame.outline, call.func), is_wrapper):
                found[value.node] = value
    return list(found.values()) or list(all_wrappers(view.resolver))


def all_wrappers(resolver: Resolver) -> Iterator[Value]:
    """Every call of the workspace that wraps a model."""
    for path in resolver.workspace.paths():
        text = resolver.workspace.text(path)
        if text is None or not any(word in text for word in WORDS):
            continue
        if (file := outline(resolver.workspace.file(path))) is not None:
            calls = (Value(file, node) for node in file.nodes if isinstance(node, ast.Call))
            yield from sorted((one for one in calls if is_wrapper(one)), key=lambda one: one.node.lineno)


def option(resolver: Resolver, wrapper: Value, name: str) -> Argument:
    """What a wrapper is given for one option."""
    assert isinstance(wrapper.node, ast.Call)
    is_own = last_name(wrapper.node.func) not in _STRATEGIES
    return argument(resolver, wrapper, name, _POSITIONS.get(name) if is_own else None)


def literals(resolver: Resolver, given: Argument) -> list[object]:
    """The constants that an option may be; none where it is not given or the source does not tell."""
    if given.value is None:
        return []
    return [one.node.value for one in constants(resolver, given.value) if isinstance(one.node, ast.Constant)]


def confirm_option(
    case: Case,
    is_faulty: Callable[[Resolver, Value], bool],
    fix: Callable[[Resolver, Value], Fix | str],
) -> Confirmation | None:
    """The confirmation at the first wrapper that is faulty. `fix` answers a fix, or why there is none."""
    view = scene(case)
    if view is None:
        return None
    faulty = [one for one in wrappers(view) if is_faulty(view.resolver, one)]
    if not faulty:
        return None
    wrapper = faulty[0]
    place = wrapper.outline.location(wrapper.node, case.location)
    others = tuple(
        Related("another model is wrapped so", other.outline.location(other.node, case.location))
        for other in faulty[1:]
    )
    answer = fix(view.resolver, wrapper)
    if isinstance(answer, str):
        return Confirmation(place, (), others, answer)
    return Confirmation(place, (answer,), others)


def set_option(resolver: Resolver, wrapper: Value, name: str, text: str, fix: tuple[str, str, Safety]) -> Fix | str:
    """A fix (of this id, title and safety) that gives an option a value, wherever it is written; else why not."""
    assert isinstance(wrapper.node, ast.Call)
    given = option(resolver, wrapper, name)
    if given.is_unknown:
        return f"{name} may be passed by keyword unpacking that the source does not spell out"
    patch = Patch(wrapper.outline)
    if given.value is None:
        column = patch.outline.position(patch.outline.span(wrapper.node)[0])[1] - 1
        patch.replace(wrapper.node, edit_call(patch.outline.segment(wrapper.node), {name: text}, column=column))
    else:
        written = [one for one in constants(resolver, given.value) if str(getattr(one.node, "value", "")) != text]
        if len(written) != 1:
            return f"{name} is set outside this call"
        patch = Patch(written[0].outline)
        patch.replace(written[0].node, text)
    return Fix(fix[0], fix[1], fix[2], patch.edits())


def drop_option(resolver: Resolver, wrapper: Value, name: str, fix: tuple[str, str, Safety]) -> Fix | str:
    """A fix that takes an option out of the call, or sets it to False where it is written elsewhere; else why not."""
    assert isinstance(wrapper.node, ast.Call)
    held = next((keyword for keyword in wrapper.node.keywords if keyword.arg == name), None)
    if held is None or not isinstance(held.value, ast.Constant):
        return set_option(resolver, wrapper, name, "False", fix)
    patch = Patch(wrapper.outline)
    column = patch.outline.position(patch.outline.span(wrapper.node)[0])[1] - 1
    patch.replace(wrapper.node, edit_call(patch.outline.segment(wrapper.node), drop=(name,), column=column))
    return Fix(fix[0], fix[1], fix[2], patch.edits())
