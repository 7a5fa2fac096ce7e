"""What functions and classes of libraries give, as far as building models asks for it."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .builtin_functions import call_builtin
from .classes import is_module_base
from .layer_shapes import call_functional
from .layers import layer_name
from .module_building import build_layer, construct_layer, deep_copy
from .operators import FAULTS, MOST_ITEMS, items_of
from .sequence_functions import make_dict
from .signatures import Arguments
from .tensor_functions import call_function
from .values import (
    MORE,
    Frame,
    ImportValue,
    Kind,
    LibraryValue,
    ModuleValue,
    ObjectValue,
    PartialValue,
    TensorValue,
    Unknown,
    Value,
    is_known,
)

if TYPE_CHECKING:
    from .machine import Machine

_NAMESPACES = frozenset(
    (
        "types.SimpleNamespace",
        "argparse.Namespace",
        "easydict.EasyDict",
        "ml_collections.ConfigDict",
        "omegaconf.OmegaConf.create",
        "box.Box",
        "addict.Dict",
        "munch.Munch",
        "yacs.config.CfgNode",
    )
)
_DICTS = frozenset(("collections.OrderedDict", "typing.OrderedDict", "collections.Counter"))
_PASS_THROUGH = re.compile(
    r"torch\.(compile|jit\.(script|script_if_tracing|ignore|unused|trace)|nn\.init\.\w+|fx\.wrap)$"
    r"|torch\.nn\.utils\.(parametrizations\.)?(weight_norm|spectral_norm)$"
    r"|(copy\.copy|typing\.cast)$|timm\.layers\.trunc_normal_$|torch\.distributed\.fsdp\.FullyShardedDataParallel$"
)
_NEVER = re.compile(
    r"torch\.(jit\.is_(scripting|tracing)|onnx\.is_in_onnx_export|compiler\.is_(compiling|exporting))$|torch\._dynamo\.is_compiling$"
)
_MODELS = re.compile(
    r"torchvision\.models\.(\w+\.)*[a-z]\w*$|timm\.(create_model|models\.(\w+\.)*[a-z]\w*)$|torch\.hub\.load$"
    r"|segmentation_models_pytorch\.\w+|transformers\.\w+(\.from_pretrained|\.from_config)?$"
    r"|monai\.networks\.(\w+\.)*[A-Z]\w*$|diffusers\.[A-Z]\w*(\.from_pretrained)?$"
    r"|efficientnet_pytorch\.EfficientNet\.\w+$|open_clip\.\w+$|torchvision\.ops\.(\w+\.)*[A-Z]\w*$"
)
_NO_MODELS = re.compile(
    r"(Config|Tokenizer|Processor|Extractor|Scheduler|Trainer|Arguments|Transform\w*|Weights)(\.\w+)?$|list_models$|resolve\w*$"
)


def call_library(machine: Machine, dotted: str, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """What a call of something outside the workspace gives."""
    if dotted.startswith("builtins."):
        return call_builtin(machine, dotted.removeprefix("builtins."), given, node, frame)
    if dotted.endswith(".__init__") and given.args and isinstance(given.args[0], ModuleValue):
        if name := layer_name(dotted.removesuffix(".__init__")):
            rest = Arguments(given.args[1:], given.kwargs, given.is_open)
            construct_layer(machine, given.args[0], name, rest, node, frame)
        return None
    if name := layer_name(dotted):
        return build_layer(machine, name, given, node, frame)
    if dotted.startswith(("torch.nn.Parameter", "torch.nn.parameter.", "torch.nn.Buffer")):
        return _parameter(dotted, given)
    if _PASS_THROUGH.match(dotted):
        return given.args[-1] if dotted == "typing.cast" and given.args else given.get(0, "model")
    if _NEVER.match(dotted):
        return False
    if (make := _FUNCTIONS.get(dotted)) is not None:
        return make(machine, given, node, frame)
    if dotted in _NAMESPACES:
        return _namespace(given)
    if dotted in _DICTS:
        return make_dict(machine, given, node, frame)
    if dotted == "argparse.ArgumentParser":
        return ObjectValue(None, {}, dotted)
    if dotted.startswith("math."):
        return _math(dotted.removeprefix("math."), given)
    return _torch(machine, dotted, given, node, frame)


def _torch(machine: Machine, dotted: str, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    home, _, name = dotted.rpartition(".")
    if home in ("torch", "torch.nn.functional", "numpy", "torch.special", "torch.linalg", "torch.Tensor"):
        found = call_functional(name, given)
        if found is None:
            found = call_function("tensor" if name == "array" else name, given)
        if found is not None:
            return found
    if home == "torch.fft" and given.args and isinstance(given.args[0], TensorValue):
        return TensorValue(None, "", sources=given.args[0].sources)
    if (_MODELS.match(dotted) and not _NO_MODELS.search(dotted)) or is_module_base(dotted):
        return _opaque(machine, dotted, given, node, frame)
    if dotted.startswith("transformers.") and dotted.endswith("Config"):
        return ObjectValue(None, dict(given.kwargs), dotted)
    return Unknown(f"what {dotted}() gives")


def _opaque(machine: Machine, dotted: str, given: Arguments, node: ast.AST, frame: Frame) -> ModuleValue:
    """A model or layer of a library whose inside is not known."""
    arguments: dict[str, Value] = {str(at): one for at, one in enumerate(given.args)}
    made = ModuleValue(dotted, None, frame.path, node, arguments | given.kwargs, is_opaque=True)
    machine.note_module(made)
    return made


def _parameter(dotted: str, given: Arguments) -> Value:
    held = given.get(0, "data")
    trainable = given.get(1, "requires_grad", True)
    kind = Kind.BUFFER if dotted.endswith("Buffer") else Kind.PARAMETER
    tensor = held if isinstance(held, TensorValue) else TensorValue(None, "")
    is_trainable = trainable is not False and kind is Kind.PARAMETER
    return replace(tensor, kind=kind, is_trainable=is_trainable, data=None, sources=frozenset())


def _namespace(given: Arguments) -> Value:
    attributes: dict[str, Value] = {}
    for one in given.args:
        if isinstance(one, dict):
            nested = {
                key: _namespace(Arguments([value])) if isinstance(value, dict) else value for key, value in one.items()
            }
            attributes.update({key: value for key, value in nested.items() if isinstance(key, str)})
    attributes.update(given.kwargs)
    return ObjectValue(None, attributes, "types.SimpleNamespace")


def _math(name: str, given: Arguments) -> Value:
    numbers = [one for one in given.args if isinstance(one, (int, float))]
    if name == "prod" and given.args and isinstance(given.args[0], (list, tuple)) and is_known(given.args[0]):
        numbers = [one for one in given.args[0] if isinstance(one, (int, float))]
        return math.prod(numbers) if len(numbers) <= 16 else Unknown("too large")
    function = getattr(math, name, None)
    if len(numbers) != len(given.args) or not callable(function) or name in ("factorial", "perm", "comb"):
        return Unknown("computed from a value that is not known")
    try:
        return function(*numbers)
    except FAULTS:
        return Unknown("cannot be computed")


def _partial(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    return PartialValue(given.args[0], tuple(given.args[1:]), given.kwargs) if given.args else Unknown("partial()")


def _deepcopy(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    return deep_copy(given.get(0, "x"), {}, machine)


def _repeat(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    times = given.get(1, "times", Unknown())
    if not given.args or type(times) is not int or not 0 <= times <= MOST_ITEMS:
        return Unknown("repeat()")
    return [given.args[0]] * times


def _chain(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    found: list[Value] = []
    for one in given.args:
        items = items_of(machine, one)
        found.extend([MORE] if items is None else items)
    return found


def _chain_from(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    parts = items_of(machine, given.get(0, "iterable"))
    return _chain(machine, Arguments(parts), node, frame) if parts is not None else [MORE]


def _product(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    rows: list[tuple[Value, ...]] = [()]
    for one in given.args:
        items = items_of(machine, one)
        if items is None or len(rows) * len(items) > MOST_ITEMS:
            return Unknown("product()")
        machine.budget.step(len(rows) * len(items))
        rows = [(*row, item) for row in rows for item in items]
    return list(rows)


def _accumulate(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    total: int | float = 0
    found: list[Value] = []
    held = given.args[0] if given.args else None
    for one in held if isinstance(held, (list, tuple)) else ():
        if not isinstance(one, (int, float)):
            return Unknown("accumulate()")
        total += one
        found.append(total)
    return found if isinstance(held, (list, tuple)) and len(given.args) == 1 else Unknown("accumulate()")


def _defaultdict(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    return make_dict(machine, Arguments(given.args[1:], given.kwargs), node, frame)


def _asdict(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    of = given.get(0, "obj")
    return dict(of.attributes) if isinstance(of, ObjectValue) else Unknown("asdict()")


def _replaced(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    of = given.get(0, "obj")
    if not isinstance(of, ObjectValue):
        return Unknown("replace()")
    return ObjectValue(of.cls, {**of.attributes, **given.kwargs}, of.dotted)


def _namedtuple(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    names = given.get(1, "field_names")
    fields = names.replace(",", " ").split() if isinstance(names, str) else names
    if not isinstance(fields, (list, tuple)) or not all(isinstance(one, str) for one in fields):
        return Unknown("namedtuple()")
    text = f"def make({', '.join(str(one) for one in fields)}): ..."
    try:
        tree = ast.parse(text).body[0]
    except (SyntaxError, ValueError):
        return Unknown("namedtuple()")
    assert isinstance(tree, ast.FunctionDef)
    return PartialValue(LibraryValue("collections.namedtuple.make"), (tuple(one.arg for one in tree.args.args),), {})


def _make_tuple(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    names, *values = given.args or [()]
    fields = names if isinstance(names, tuple) else ()
    bound = dict(zip((str(one) for one in fields), values, strict=False)) | given.kwargs
    return ObjectValue(
        None, {str(one): bound.get(str(one), Unknown("not given")) for one in fields}, "collections.namedtuple"
    )


def _environment(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    """What holds where a variable is not set."""
    return given.get(1, "default")


def _prod(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    return _math("prod", given)


def _import_module(machine: Machine, given: Arguments, _node: ast.AST, frame: Frame) -> Value:
    name = given.get(0, "name")
    return machine.imported(ImportValue(name, 0), frame.path) if isinstance(name, str) else Unknown("a module")


_FUNCTIONS: Mapping[str, Callable[[Machine, Arguments, ast.AST, Frame], Value]] = {
    "os.environ.get": _environment,
    "os.getenv": _environment,
    "functools.partial": _partial,
    "copy.deepcopy": _deepcopy,
    "itertools.repeat": _repeat,
    "itertools.chain": _chain,
    "itertools.chain.from_iterable": _chain_from,
    "itertools.product": _product,
    "itertools.accumulate": _accumulate,
    "collections.defaultdict": _defaultdict,
    "collections.namedtuple": _namedtuple,
    "collections.namedtuple.make": _make_tuple,
    "dataclasses.asdict": _asdict,
    "dataclasses.replace": _replaced,
    "numpy.prod": _prod,
    "importlib.import_module": _import_module,
}
