"""What functions and methods of libraries show as, by their names."""

from __future__ import annotations

from collections.abc import Sequence

from ..building.classes import find
from ..building.heap import Raised
from ..building.signatures import Arguments
from ..building.values import (
    BoundMethod,
    ClassValue,
    Frame,
    FunctionValue,
    LibraryValue,
    ModuleValue,
    NativeMethod,
    ObjectValue,
    PartialValue,
    TensorValue,
    Unknown,
    Value,
)
from .builtins import passed_on, walk_builtin
from .events import STEP
from .layers import note_shown
from .literals import literal_inputs
from .quiet import NO_OPERATORS, NUMBERS
from .shows import OPTIMIZER_NAMES, shown_by_function
from .walker import NUMBER, UNSURE, Walker

_NUMERIC_LIBRARIES = ("numpy.", "math.", "random.", "time.", "os.", "scipy.", "PIL.", "cv2.", "json.", "itertools.")
_TORCH = ("torch.", "torchvision.")
_PASS_ON = frozenset(("islice", "cycle", "tqdm", "track", "takewhile", "chain"))
"""Functions of libraries that go through the items of what they are given."""


def walk_method(walker: Walker, callee: NativeMethod, given: Arguments, frame: Frame) -> Value:
    """A method of a tensor, a module or an object that a library has."""
    of, name = callee.of, callee.name
    value = _tried(walker, callee, given, frame)
    if isinstance(of, ObjectValue) and name == "step" and of.dotted.startswith("torch.optim."):
        if "lr_scheduler" not in of.dotted:
            walk_step(walker, given, frame, 1.0)
        return NUMBER
    if isinstance(of, TensorValue):
        if name not in NO_OPERATORS:
            note_named(walker, name, [of, *given.args], given, is_sure=True)
        if not isinstance(value, Unknown):
            return value
        return NUMBER if name in NO_OPERATORS or name in NUMBERS else TensorValue(None, "")
    is_moved = isinstance(of, ModuleValue) and name in ("to", "cuda", "float", "half")
    if isinstance(of, (ModuleValue, ObjectValue)) and name not in NO_OPERATORS and not is_moved:
        note_named(walker, name, [of, *given.args], given, is_sure=False)
    return value


def walk_step(walker: Walker, given: Arguments, frame: Frame, skip: float) -> None:
    """An optimizer's step; a closure that it is given runs inside its range."""
    walker.note([STEP], skip)
    closure = given.get(0, "closure")
    if isinstance(closure, (FunctionValue, BoundMethod, PartialValue)):
        walker.call(closure, Arguments(), walker.node, frame)
        walker.note(dict.fromkeys(OPTIMIZER_NAMES, 0.05), 0.0, 0.05)


def _tried(walker: Walker, callee: Value, given: Arguments, frame: Frame) -> Value:
    try:
        return walker.called(callee, given, frame)
    except Raised:
        return Unknown("a call that is not followed")


def walk_library(walker: Walker, callee: LibraryValue, given: Arguments, frame: Frame) -> Value:
    """A function or class of a library called."""

    dotted, name = callee.dotted, callee.name
    if dotted.startswith("builtins."):
        return walk_builtin(walker, callee, given, frame)
    if name in _PASS_ON and (passed := passed_on("iter", given)) is not None:
        return passed
    if name == "apply" and dotted.startswith("torch.autograd"):
        return _walk_applied(walker, given, frame)
    value = _tried(walker, callee, given, frame)
    if isinstance(value, (ModuleValue, ClassValue, FunctionValue)):
        return value
    if dotted.startswith(_NUMERIC_LIBRARIES):
        # An array is a number here: computing with it runs no operator of torch.
        return NUMBER if isinstance(value, (Unknown, TensorValue)) else value
    if dotted.startswith(_TORCH):
        return _walk_torch(walker, dotted, name, given, value, frame)
    if name[:1].isupper():
        return value if not isinstance(value, Unknown) else ObjectValue(None, {}, dotted)
    walker.wildcard(0.5, 0.1, [name])
    return value


def _walk_applied(walker: Walker, given: Arguments, frame: Frame) -> Value:
    """A hand-written `torch.autograd.Function`: it shows as an operator of its own name, with its operators inside."""
    cls = given.args[0] if given.args else None
    if not isinstance(cls, ClassValue):
        walker.wildcard(0.3, 0.3)
        return TensorValue(None, "")
    walker.functions[cls] = None
    walker.note([cls.name], 1.0)
    forward = find(walker, cls, "forward")
    if isinstance(forward, FunctionValue):
        walker.call(forward, Arguments([Unknown("the context"), *given.args[1:]], given.kwargs), walker.node, frame)
    return TensorValue(None, "")


def _walk_torch(walker: Walker, dotted: str, name: str, given: Arguments, value: Value, frame: Frame) -> Value:
    if (
        name in NO_OPERATORS
        or name[:1].isupper()
        or dotted.startswith(("torch.profiler", "torch.cuda", "torch.backends"))
    ):
        return ObjectValue(None, {}, dotted) if name[:1].isupper() and isinstance(value, Unknown) else value
    if dotted.startswith("torch.nn.init"):
        walker.note(["normal_", "uniform_", "zero_", "fill_", "erfinv_", "mul_", "add_", "clamp_"], 0.0, 0.05)
        return value
    if name == "checkpoint" and given.args:
        return walker.call(given.args[0], Arguments(list(given.args[1:])), walker.node, frame)
    if dotted == "torch.autograd.grad" or name != "grad":
        note_named(walker, _torch_name(dotted, name), given.args, given, is_sure=True)
    if name in ("is_tensor", "is_grad_enabled"):
        return NUMBER
    return TensorValue(None, "") if isinstance(value, Unknown) else value


def _torch_name(dotted: str, name: str) -> str:
    """The operator of a function: those of `torch.fft` and the like have the family's name before their own."""
    family = dotted.split(".")[-2]
    if family not in ("fft", "linalg", "special"):
        return name
    shown = shown_by_function(name)
    is_listed = bool(shown) and shown[0].names != (name,)
    return name if is_listed else f"{family}_{name}"


def note_named(walker: Walker, name: str, args: Sequence[Value], given: Arguments, *, is_sure: bool) -> None:
    """Note what a function or method of this name shows as; `args` with the object itself first."""
    shown = shown_by_function(name)
    inputs = literal_inputs(name, args, given.kwargs)
    skip = 1.0 if is_sure else UNSURE
    if name == "contiguous":
        skip = 0.05
    if len(shown) == 1 and shown[0].names == (name,):
        walker.note({name: 0.0, name + "_": 0.3}, skip, inputs=inputs)
        return
    has_name = any(name in one.names for one in shown)
    note_shown(walker, shown, skip, inputs if has_name else None)
