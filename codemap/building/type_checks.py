"""What values are instances of."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .classes import is_module_base, mro
from .signatures import Arguments
from .values import (
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

if TYPE_CHECKING:
    from .machine import Machine


_TYPES: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "str": (str,),
    "bool": (bool,),
    "list": (list,),
    "tuple": (tuple,),
    "dict": (dict,),
    "set": (set,),
    "bytes": (bytes,),
    "range": (range,),
    "slice": (slice,),
    "NoneType": (type(None),),
    "Iterable": (list, tuple, dict, set, str, range),
    "Sequence": (list, tuple, str, range),
    "Mapping": (dict,),
    "MutableMapping": (dict,),
    "Number": (int, float, complex),
    "Integral": (int,),
    "Real": (int, float),
    "OrderedDict": (dict,),
    "List": (list,),
    "Tuple": (tuple,),
    "Dict": (dict,),
}


_CALLABLES: Mapping[str, tuple[type, ...]] = {
    "functools.partial": (PartialValue,),
    "types.FunctionType": (FunctionValue,),
    "builtins.type": (ClassValue, LibraryValue),
}


def _isinstance(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    value, kinds = given.get(0, "obj"), given.get(1, "class_or_tuple")
    found = [_is_instance(machine, value, kind) for kind in (kinds if isinstance(kinds, tuple) else (kinds,))]
    return True if True in found else Unknown("a type that is not known") if None in found else False


def _is_instance(machine: Machine, value: Value, kind: Value) -> bool | None:
    """Whether a value is of a type; None where that cannot be told."""
    if isinstance(value, Unknown):
        known = {_is_instance(machine, one, kind) for one in value.alternatives}
        return known.pop() if len(known) == 1 and len(value.alternatives) > 1 else None
    if isinstance(kind, ClassValue):
        cls = value.cls if isinstance(value, (ModuleValue, ObjectValue)) else None
        return cls is not None and kind in mro(machine, cls)
    if not isinstance(kind, LibraryValue):
        return None
    if kind.dotted in _CALLABLES:
        return isinstance(value, _CALLABLES[kind.dotted])
    types = _TYPES.get(kind.name)
    if types is not None and not kind.dotted.startswith("torch"):
        is_number = isinstance(value, bool) and kind.name in ("int", "Integral", "Number", "Real")
        return is_number or (isinstance(value, types) and (kind.name == "bool" or type(value) is not bool))
    if isinstance(value, ModuleValue):
        return _is_layer(machine, value, kind)
    if kind.dotted in ("torch.Tensor", "torch.nn.Parameter"):
        return isinstance(value, TensorValue)
    return False if value is None or isinstance(value, (int, float, str, list, tuple, dict)) else None


def _is_layer(machine: Machine, module: ModuleValue, kind: LibraryValue) -> bool | None:
    """Whether a module is of a library's class."""
    if kind.dotted in ("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"):
        return True
    bases = mro(machine, module.cls) if module.cls is not None else ()
    own = [module.dotted, *(base.dotted for base in bases if isinstance(base, LibraryValue))]
    if any(one.rpartition(".")[2] == kind.name for one in own):
        return True
    if kind.name.strip("_").endswith(("ConvNd", "BatchNorm", "InstanceNorm", "NormBase")):
        stem = kind.name.strip("_").removesuffix("Nd").removesuffix("Base")
        return any(stem in one for one in own)
    return None if module.is_opaque or not is_module_base(kind.dotted) else False


def _issubclass(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    cls, kind = given.get(0, "cls"), given.get(1, "class_or_tuple")
    if isinstance(cls, ClassValue) and isinstance(kind, (ClassValue, LibraryValue)):
        return kind in mro(machine, cls)
    return Unknown("a type that is not known")


def _type(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    of = given.get(0, "object")
    if isinstance(of, (ModuleValue, ObjectValue)):
        return of.cls if of.cls is not None else LibraryValue(of.dotted)
    if len(given.args) == 1 and (of is None or isinstance(of, (int, float, str, list, tuple, dict))):
        return LibraryValue(f"builtins.{type(of).__name__}")
    return Unknown("a type")


def _callable(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    of = given.get(0, "obj")
    if isinstance(of, (Unknown, LibraryValue, ObjectValue)):
        return True if isinstance(of, LibraryValue) and of.name[:1].isupper() else Unknown("not known")
    return isinstance(of, (FunctionValue, ClassValue, BoundMethod, ModuleValue, PartialValue, NativeMethod))


TYPE_FUNCTIONS: Mapping[str, Callable[[Machine, Arguments, ast.AST, Frame], Value]] = {
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "type": _type,
    "callable": _callable,
}
"""By name."""
