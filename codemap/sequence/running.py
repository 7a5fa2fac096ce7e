"""What calls show as: functions and modules of the workspace by what is in them, those of torch by name."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..automaton import NEVER
from ..building.calls import is_generator
from ..building.classes import find, is_module_class
from ..building.heap import Raised
from ..building.layers import layer_name
from ..building.signatures import Arguments, bind, signature_of
from ..building.values import (
    MORE,
    BoundMethod,
    ClassValue,
    Frame,
    FunctionValue,
    LibraryValue,
    ModuleValue,
    Names,
    NativeMethod,
    ObjectValue,
    PartialValue,
    TensorValue,
    Unknown,
    Value,
    join,
)
from .events import STEP
from .layer_inputs import layer_inputs
from .literals import literal_inputs
from .program import Inputs
from .shows import OPTIMIZER_NAMES, Shown, fast_path, shown_by_function, shown_by_layer

if TYPE_CHECKING:
    from .walker import Walker

_NO_OPERATORS = frozenset(
    [
        "size",
        "dim",
        "numel",
        "stride",
        "element_size",
        "is_contiguous",
        "data_ptr",
        "storage",
        "register_hook",
        "items",
        "keys",
        "values",
        "append",
        "extend",
        "insert",
        "pop",
        "get",
        "update",
        "parameters",
        "named_parameters",
        "named_modules",
        "modules",
        "children",
        "named_children",
        "buffers",
        "named_buffers",
        "train",
        "eval",
        "format",
        "join",
        "startswith",
        "endswith",
        "strip",
        "lower",
        "upper",
        "replace",
        "read",
        "write",
        "close",
        "open",
        "is_cuda",
        "get_device",
        "requires_grad_",
        "retain_grad",
        "set_postfix",
        "set_description",
        "export_chrome_trace",
        "key_averages",
        "start",
        "stop",
        "is_available",
        "device_count",
        "manual_seed",
        "synchronize",
        "empty_cache",
        "barrier",
        "is_floating_point",
        "is_complex",
        "nelement",
        "ndimension",
        "apply_",
        "set_epoch",
        "add_argument",
        "parse_args",
        "add_scalar",
        "log",
        "info",
        "debug",
        "warning",
        "error",
        "register_buffer",
        "register_parameter",
        "register_module",
        "add_module",
        "register_forward_hook",
        "is_initialized",
        "perf_counter",
        "set_grad_enabled",
        "no_grad",
        "inference_mode",
        "enable_grad",
        "autocast",
        "device",
        "dtype",
        "Size",
        "finfo",
        "iinfo",
        "set_num_threads",
        "get_rank",
        "get_world_size",
        "init_process_group",
        "set_detect_anomaly",
        "use_deterministic_algorithms",
        "remove",
        "seed",
        "get_lr",
        "get_last_lr",
        "makedirs",
        "mkdir",
        "time",
        "time_ns",
        "sleep",
        "astype",
        "ravel",
        "shape",
        "ndim",
    ]
)
"""Methods and functions that run no operator whatever they are called on."""
_NUMBERS = frozenset(
    [
        "size",
        "dim",
        "numel",
        "stride",
        "item",
        "tolist",
        "element_size",
        "numpy",
        "is_contiguous",
        "nelement",
        "ndimension",
    ]
)
"""Methods whose result is no tensor."""
_NUMERIC_LIBRARIES = ("numpy.", "math.", "random.", "time.", "os.", "scipy.", "PIL.", "cv2.", "json.", "itertools.")
_TORCH = ("torch.", "torchvision.")
_PASS_ON = frozenset(("islice", "cycle", "tqdm", "track", "takewhile", "chain"))
"""Functions of libraries that go through the items of what they are given."""
_OF_OPERATORS = ("torch.distributions.", "torch.nn.utils.rnn.", "torchvision.transforms", "torch.utils.data.default")
"""Parts of libraries that are written in Python: what they show as is not listed."""
_MODULE_METHODS = frozenset(("forward", "__call__"))
_LIBRARY_OBJECTS = ("torch.optim.", "torch.utils.data.", "torch.cuda.amp.GradScaler", "torch.amp.GradScaler")


def walk_call(walker: Walker, callee: Value, given: Arguments, frame: Frame) -> Value:
    """What a call gives, the operators that it runs noted."""
    match callee:
        case LibraryValue() if callee.dotted.startswith(_LIBRARY_OBJECTS) and callee.name[:1].isupper():
            return _library_object(callee, given)
        case _ if walker.muted:
            return walker.plain_call(callee, given, frame)
        case ModuleValue():
            return walk_module(walker, callee, given, frame)
        case ClassValue() if is_module_class(walker, callee):
            return walker.called(callee, given, frame)
        case FunctionValue() | BoundMethod():
            return _walk_function(walker, callee, given, frame)
        case NativeMethod(of=ModuleValue() as module, name=name) if name in _MODULE_METHODS:
            return walk_layer(walker, module, given, frame)
        case NativeMethod():
            return _walk_method(walker, callee, given, frame)
        case LibraryValue():
            return _walk_library(walker, callee, given, frame)
        case Unknown():
            return _walk_unknown(walker, callee, given, frame)
        case ObjectValue(cls=None):
            walker.wildcard(0.9, 0.1)
            return Unknown("what an object of a library gives")
    return walker.plain_call(callee, given, frame)


def call_method(walker: Walker, of: ObjectValue, name: str, arguments: Sequence[Value], frame: Frame) -> Value:
    """Call a method that Python calls by itself (`__enter__`, `__getitem__`); nothing if there is none."""
    method = find(walker, of.cls, name) if of.cls is not None else None
    if not isinstance(method, FunctionValue):
        return of if name == "__enter__" else None
    return walker.call(BoundMethod(method, of), Arguments(list(arguments)), walker.node, frame)


def _library_object(callee: LibraryValue, given: Arguments) -> Value:
    names = ("dataset", "batch_size") if callee.name == "DataLoader" else ()
    attributes: dict[str, Value] = {**dict(zip(names, given.args, strict=False)), **given.kwargs}
    return ObjectValue(None, attributes, f"{callee.dotted}")


def _walk_function(walker: Walker, callee: FunctionValue | BoundMethod, given: Arguments, frame: Frame) -> Value:
    from .walker import Generated

    function = callee.function if isinstance(callee, BoundMethod) else callee
    if isinstance(callee, BoundMethod) and isinstance(callee.of, ModuleValue) and function.name == "forward":
        walker.forwards += 1
        try:
            return walker.plain_call(callee, given, frame)
        finally:
            walker.forwards -= 1
    node = function.node
    if not isinstance(node, ast.Lambda) and is_generator(node):
        args = [callee.of, *given.args] if isinstance(callee, BoundMethod) else given.args
        whole = Arguments(args, given.kwargs, given.is_open)
        names = Names(bind(signature_of(node.args), whole, function.defaults))
        inner = Frame(function.path, names, function.frame, function, function.owner)
        walker.execute(node.body, inner)
        return Generated("what a generator gives", (), (walker.yielded,))
    return walker.plain_call(callee, given, frame)


# Modules


def walk_module(walker: Walker, module: ModuleValue, given: Arguments, frame: Frame) -> Value:
    """A module called: its `forward` of the workspace, or what its library shows as."""
    forward = find(walker, module.cls, "forward") if module.cls is not None else None
    name = module.cls.name if module.cls is not None else module.dotted.rpartition(".")[2]
    kept = walker.within, walker.is_in_layer
    walker.within, walker.is_in_layer = walker.within.in_module(name), not isinstance(forward, FunctionValue)
    try:
        if isinstance(forward, FunctionValue):
            return walker.call(BoundMethod(forward, module), given, walker.node, frame)
        return walk_layer(walker, module, given, frame)
    finally:
        walker.within, walker.is_in_layer = kept


def walk_layer(walker: Walker, module: ModuleValue, given: Arguments, frame: Frame) -> Value:
    """A library's module called."""
    name = layer_name(module.dotted) or module.dotted.rpartition(".")[2]
    if name == "Sequential":
        value = given.args[0] if given.args else Unknown("an input")
        items = module.items()
        if MORE in items and walker.at:
            walker.join_nodes([walker.program.add(None, walker.at)])
        head = walker.at
        for item in items:
            if item is not MORE:
                value = walker.call(item, Arguments([value]), walker.node, frame)
            elif head:
                # How many follow is not known: of the same kinds, most likely.
                walker.program.link(walker.at, head[0])
                walker.at = [*head, *walker.at]
        return value
    if name in ("DataParallel", "DistributedDataParallel") and "module" in module.attributes:
        walker.note(["broadcast_tensors", "scatter", "_broadcast_coalesced"], 0.0, 0.1)
        return walker.call(module.attributes["module"], given, walker.node, frame)
    if name in ("TransformerEncoder", "TransformerDecoder"):
        return _walk_stack(walker, module, given, frame)
    shown = shown_by_layer(name)
    if shown is None or module.is_opaque:
        walker.wildcard(0.25, 1.0)
        return Unknown("what a library's module gives")
    if module.layer_arguments.get("padding_mode", "zeros") == "zeros":
        shown = tuple(one for one in shown if one.names != ("pad",) or not one.is_optional)
    start = walker.at
    inputs = layer_inputs(module, name)
    note_shown(walker, shown, 1.0, inputs)
    if alternative := fast_path(name):
        end, walker.at = walker.at, start
        note_shown(walker, alternative, 1.0, None)
        walker.join_nodes([*end, *walker.at])
    if name in ("MultiheadAttention", "LSTM", "GRU", "RNN", "LSTMCell"):
        return (TensorValue(None, ""), Unknown("the second result of a layer"))
    return given.args[0] if name == "Identity" and given.args else TensorValue(None, "")


def _walk_stack(walker: Walker, module: ModuleValue, given: Arguments, frame: Frame) -> Value:
    layers = module.attributes.get("layers")
    items = layers.items() if isinstance(layers, ModuleValue) else []
    for item in items:
        if isinstance(item, ModuleValue):
            walker.call(item, given, walker.node, frame)
    norm = module.attributes.get("norm")
    if isinstance(norm, ModuleValue):
        walker.call(norm, given, walker.node, frame)
    if not items:
        walker.wildcard(0.25, 1.0)
    return TensorValue(None, "")


def note_shown(walker: Walker, shown: Sequence[Shown], skip: float, inputs: Inputs | None) -> None:
    """Note the operators of a call, one after another. `inputs` are those of the last that must come."""
    main = next((one for one in reversed(shown) if not one.is_optional), None)
    for one in shown:
        walker.note(
            one.names,
            0.0 if one.is_optional else skip,
            0.02 if one.repeats else NEVER,
            inputs=inputs if one is main else None,
        )


# Functions and methods of libraries


def _walk_method(walker: Walker, callee: NativeMethod, given: Arguments, frame: Frame) -> Value:
    from .walker import NUMBER

    of, name = callee.of, callee.name
    value = _tried(walker, callee, given, frame)
    if isinstance(of, ObjectValue) and name == "step" and of.dotted.startswith("torch.optim."):
        if "lr_scheduler" not in of.dotted:
            walk_step(walker, given, frame, 1.0)
        return NUMBER
    if isinstance(of, TensorValue):
        if name in _NO_OPERATORS:
            return NUMBER if isinstance(value, Unknown) else value
        note_named(walker, name, [of, *given.args], given, is_sure=True)
        if name in _NUMBERS:
            return NUMBER if isinstance(value, Unknown) else value
        return TensorValue(None, "") if isinstance(value, Unknown) else value
    if (isinstance(of, ModuleValue) and name not in _NO_OPERATORS and name not in ("to", "cuda", "float", "half")) or (
        isinstance(of, ObjectValue) and name not in _NO_OPERATORS
    ):
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


def _walk_library(walker: Walker, callee: LibraryValue, given: Arguments, frame: Frame) -> Value:
    from .builtins import passed_on, walk_builtin
    from .walker import NUMBER

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
    from .walker import NUMBER

    if (
        name in _NO_OPERATORS
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
    is_named = shown_by_function(name)[:1] != () and shown_by_function(name)[0].names != (name,)
    return f"{family}_{name}" if family in ("fft", "linalg", "special") and not is_named else name


def note_named(walker: Walker, name: str, args: Sequence[Value], given: Arguments, *, is_sure: bool) -> None:
    """Note what a function or method of this name shows as; `args` with the object itself first."""
    from .walker import UNSURE

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


def _walk_unknown(walker: Walker, callee: Unknown, given: Arguments, frame: Frame) -> Value:
    """A call of something that is not known: of one of several things, or of anything with that name."""
    from .walker import NUMBER, Number

    kinds = (FunctionValue, ModuleValue, BoundMethod, ClassValue, PartialValue, LibraryValue, NativeMethod, ObjectValue)
    choices = [one for one in callee.alternatives if isinstance(one, kinds)]
    if choices:
        start, ends, found = walker.at, [], []
        for one in choices:
            walker.at = list(start)
            try:
                found.append(walker.call(one, given, walker.node, frame))
            except Raised:
                continue
            ends += walker.at
        walker.join_nodes(ends)
        return join(found) if found else Unknown("one of several is called")
    node = walker.node
    if not isinstance(node, ast.Call):
        walker.wildcard(0.9, 0.1)
        return Unknown("what a call gives")
    if isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if name in _NO_OPERATORS:
            return NUMBER if name in _NUMBERS else Unknown("what a method gives")
        if isinstance(callee, Number):
            return NUMBER
        if name == "step":
            walk_step(walker, given, frame, 0.1)
            return NUMBER
        note_named(walker, name, [Unknown("the object"), *given.args], given, is_sure=False)
        return NUMBER if name in _NUMBERS else Unknown("what a method gives")
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    walker.wildcard(0.7, 0.2, [name] if name else ())
    return Unknown("what a call gives")
