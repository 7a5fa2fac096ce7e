"""Python's own functions on values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .classes import ABSENT, is_module_base, mro
from .module_methods import MODULE_METHODS
from .objects import delete_attribute, get_attribute, set_attribute
from .signatures import Arguments
from .values import (
    MORE,
    BoundMethod,
    ClassValue,
    Frame,
    FunctionValue,
    ImportValue,
    LibraryValue,
    ModuleValue,
    NativeMethod,
    ObjectValue,
    PartialValue,
    SuperValue,
    TensorValue,
    Unknown,
    Value,
    is_known,
)

if TYPE_CHECKING:
    from .machine import Machine

_FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)
_MOST_TEXT = 2_000
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
_COMPUTED: Mapping[str, Callable[..., object]] = {
    "abs": abs,
    "round": round,
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "chr": chr,
    "ord": ord,
    "divmod": divmod,
    "min": min,
    "max": max,
    "sum": sum,
    "pow": pow,
    "repr": repr,
    "complex": complex,
    "hash": hash,
    "range": range,
    "slice": slice,
}


def call_builtin(machine: Machine, name: str, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """What one of Python's own functions gives."""
    make = _FUNCTIONS.get(name)
    if make is not None:
        return make(machine, given, node, frame)
    if name in _COMPUTED:
        return _computed(machine, name, given)
    return Unknown(f"what {name}() gives")


def _computed(machine: Machine, name: str, given: Arguments) -> Value:
    """Functions of plain values that are as cheap as they look."""
    args = [_number(one) for one in given.args]
    if name == "pow" or given.is_open or not all(_is_plain(one) for one in args):
        return Unknown("computed from a value that is not known")
    if name in ("min", "max", "sum") and len(args) == 1:
        machine.budget.step(len(args[0]) if isinstance(args[0], (list, tuple, range)) and len(args[0]) < 10**6 else 1)
        if isinstance(args[0], range) and len(args[0]) > 10_000:
            return Unknown("too large")
    if (
        name in ("str", "repr", "int")
        and args
        and isinstance(args[0], (str, list, tuple, dict))
        and len(args[0]) > _MOST_TEXT
    ):
        return Unknown("too large")
    kwargs = {key: value for key, value in given.kwargs.items() if key in ("key", "default", "start", "ndigits")}
    if "key" in kwargs:
        return Unknown("computed by a key")
    try:
        return _COMPUTED[name](*args, **kwargs)
    except _FAULTS:
        return Unknown("cannot be computed")


def _number(value: Value) -> Value:
    """The number that a tensor with one element holds, if it is known."""
    if isinstance(value, TensorValue) and value.data is not None and len(value.data) == 1:
        return value.data[0]
    return value


def _is_plain(value: Value) -> bool:
    is_plain = value is None or isinstance(value, (int, float, str, complex, list, tuple, dict, set, range, bytes))
    if isinstance(value, (list, tuple, set)):
        return all(_is_plain(item) for item in value) if len(value) <= 10_000 else False
    return is_plain and is_known(value)


def _len(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    of = given.get(0, "obj")
    if isinstance(of, ModuleValue):
        return Unknown("a length that is not known") if of.has_more else len(of.items())
    if isinstance(of, TensorValue):
        return of.shape[0] if of.shape else Unknown("a length that is not known")
    if isinstance(of, ObjectValue) and of.cls is not None:
        method = get_attribute(machine, of, "__len__", node, frame)
        return (
            machine.call(method, Arguments(), node, frame) if isinstance(method, BoundMethod) else Unknown("a length")
        )
    if isinstance(of, (list, tuple, dict, set)) and MORE in of:
        return Unknown("a length that is not known")
    return len(of) if isinstance(of, (list, tuple, dict, set, frozenset, str, bytes, range)) else Unknown("a length")


def _sequence(machine: Machine, given: Arguments) -> list[Value] | None:
    from .expressions import items_of

    return items_of(machine, given.args[0]) if given.args else []


def _list(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    return [MORE] if items is None else items


def _tuple(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    return Unknown("a tuple of unknown length") if items is None else tuple(items)


def _set(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    try:
        return Unknown("a set that is not known") if items is None else set(items)
    except TypeError:
        return Unknown("an item that cannot be one of a set")


def make_dict(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    """`dict(...)`, `OrderedDict(...)`."""
    found: dict[Value, Value] = {}
    if given.args:
        first = given.args[0]
        if isinstance(first, ObjectValue):
            first = dict(first.attributes)
        if isinstance(first, dict):
            found.update(first)
        else:
            for pair in _sequence(machine, given) or [MORE]:
                if isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], (str, int, LibraryValue)):
                    found[pair[0]] = pair[1]
                else:
                    found[MORE] = MORE
    found.update(given.kwargs)
    if given.is_open:
        found[MORE] = MORE
    return found


def _zip(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    """Sequences of which one is not known are taken to be as long as the others."""
    from .expressions import items_of

    columns = [items_of(machine, one) for one in given.args]
    known = [column for column in columns if column is not None and MORE not in column]
    if not known:
        return [MORE] if columns else []
    count = min(len(column) for column in known)
    filled = [
        column if column is not None and MORE not in column else [Unknown("an item")] * count for column in columns
    ]
    return [tuple(row) for row in zip(*filled, strict=False)]


def _enumerate(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items, start = _sequence(machine, given), given.get(1, "start", 0)
    if items is None:
        return Unknown("items of a sequence that is not known")
    first = start if type(start) is int else 0
    return [MORE if item is MORE else (first + at, item) for at, item in enumerate(items)]


def _reversed(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    return Unknown("a sequence of unknown length") if items is None or MORE in items else items[::-1]


def _sorted(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    if items is None or not is_known(items) or "key" in given.kwargs:
        return Unknown("a sorted sequence that is not known")
    try:
        return sorted(items, reverse=bool(given.kwargs.get("reverse", False)))  # pyright: ignore[reportCallIssue, reportArgumentType]
    except TypeError:
        return Unknown("cannot be sorted")


def _any(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    return _quantified(machine, given, decides=True)


def _all(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    return _quantified(machine, given, decides=False)


def _quantified(machine: Machine, given: Arguments, *, decides: bool) -> Value:
    from .expressions import truth

    items = _sequence(machine, given)
    found = [None] if items is None else [truth(item) for item in items]
    return decides if decides in found else Unknown("not known") if None in found else not decides


def _map(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    rows = _zip(machine, Arguments(given.args[1:]), node, frame)
    assert isinstance(rows, list)
    found: list[Value] = []
    for row in rows:
        machine.budget.step()
        given_to: list[Value] = [Unknown("an item")] if row is MORE else list(row)
        found.append(machine.call(given.args[0], Arguments(given_to), node, frame))
        if row is MORE:
            found.append(MORE)
    return found


def _filter(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    from .expressions import items_of, truth

    items = items_of(machine, given.get(1, "iterable"))
    if items is None:
        return [MORE]
    found: list[Value] = []
    for item in items:
        kept = truth(item if given.args[0] is None else machine.call(given.args[0], Arguments([item]), node, frame))
        if kept is not False:
            found.extend([item] if kept else [item, MORE])
    return found


def _isinstance(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    value, kinds = given.get(0, "obj"), given.get(1, "class_or_tuple")
    found = [_is_instance(machine, value, kind) for kind in (kinds if isinstance(kinds, tuple) else (kinds,))]
    return True if True in found else Unknown("a type that is not known") if None in found else False


def _is_instance(machine: Machine, value: Value, kind: Value) -> bool | None:
    """Whether a value is of a type; None where that cannot be told."""
    if isinstance(value, Unknown):
        known = {_is_instance(machine, one, kind) for one in value.alternatives} if value.alternatives else {None}
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


def _getattr(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    of, name = given.get(0, "object"), given.get(1, "name")
    if not isinstance(name, str):
        return Unknown("an attribute whose name is not known")
    found = get_attribute(machine, of, name, node, frame)
    is_absent = found is ABSENT or (isinstance(found, NativeMethod) and not _has_method(of, name))
    if len(given.args) > 2 and is_absent:
        return given.args[2]
    return found


def _has_method(of: Value, name: str) -> bool:
    """Whether a value has a method of this name, as far as is known."""
    if isinstance(of, ModuleValue):
        return of.is_opaque or name in MODULE_METHODS
    if isinstance(of, TensorValue):
        return True
    return not isinstance(of, ObjectValue) and hasattr(type(of), name)


def _hasattr(machine: Machine, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    of, name = given.get(0, "obj"), given.get(1, "name")
    if not isinstance(name, str) or isinstance(of, Unknown):
        return Unknown("an attribute whose name is not known")
    if isinstance(of, LibraryValue):
        return True if of.dotted.startswith("torch") else Unknown("an attribute of a library")
    if isinstance(of, ModuleValue) and name not in of.attributes and name not in of.layer_arguments:
        found = get_attribute(machine, of, name, node, frame)
        return _has_method(of, name) if isinstance(found, NativeMethod) else found is not ABSENT
    found = get_attribute(machine, of, name, node, frame)
    return found is not ABSENT and not (isinstance(found, NativeMethod) and not _has_method(of, name))


def _setattr(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    of, name, value = (given.get(at, key) for at, key in enumerate(("obj", "name", "value")))
    if isinstance(name, str):
        set_attribute(machine, of, name, value)
    elif isinstance(of, ModuleValue):
        of.has_more = True
    return None


def _delattr(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    of, name = given.get(0, "obj"), given.get(1, "name")
    if isinstance(name, str):
        delete_attribute(machine, of, name)
    return None


def _super(_machine: Machine, given: Arguments, _node: ast.AST, frame: Frame) -> Value:
    """`super()` and `super(Class, self)`."""
    if len(given.args) == 2 and isinstance(given.args[0], ClassValue):
        return SuperValue(given.args[0], given.args[1])
    current: Frame | None = frame
    while current is not None and (current.owner is None or current.function is None):
        current = current.parent
    if current is None or current.owner is None or current.function is None:
        return Unknown("super() outside a method")
    parameters = current.function.node.args
    names = [one.arg for one in [*parameters.posonlyargs, *parameters.args]]
    return SuperValue(current.owner, current.names.get(names[0])) if names else Unknown("super() without self")


def _type(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    of = given.get(0, "object")
    if isinstance(of, (ModuleValue, ObjectValue)):
        return of.cls if of.cls is not None else LibraryValue(of.dotted)
    if len(given.args) == 1 and (of is None or isinstance(of, (int, float, str, list, tuple, dict))):
        return LibraryValue(f"builtins.{type(of).__name__}")
    return Unknown("a type")


def _vars(_machine: Machine, given: Arguments, _node: ast.AST, frame: Frame) -> Value:
    of = given.get(0, "object", frame)
    if isinstance(of, Frame):
        return of.names
    return of.attributes if isinstance(of, (ModuleValue, ObjectValue)) else Unknown("an object's attributes")


def _globals(machine: Machine, _given: Arguments, _node: ast.AST, frame: Frame) -> Value:
    file = frame.file
    return {
        name: machine.lookup(name, file) if isinstance(value, ImportValue) else value
        for name, value in list(file.names.items())
    }


def _callable(_machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    of = given.get(0, "obj")
    if isinstance(of, (Unknown, LibraryValue, ObjectValue)):
        return True if isinstance(of, LibraryValue) and of.name[:1].isupper() else Unknown("not known")
    return isinstance(of, (FunctionValue, ClassValue, BoundMethod, ModuleValue, PartialValue, NativeMethod))


def _eval(machine: Machine, given: Arguments, _node: ast.AST, frame: Frame) -> Value:
    """`eval("nn.Conv2d")`: a short expression."""
    text = given.get(0, "source")
    if not isinstance(text, str) or len(text) > 200:
        return Unknown("what eval() gives")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Unknown("what eval() gives")
    return machine.evaluate(tree.body, frame)


def _iter(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    return Unknown("an iterator") if items is None else items


def _next(machine: Machine, given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    items = _sequence(machine, given)
    if not isinstance(given.get(0, "iterator"), list) or not items:
        return given.args[1] if len(given.args) > 1 and items == [] else Unknown("the next item")
    held = given.args[0]
    assert isinstance(held, list)
    machine.heap.write(held)
    return held.pop(0) if held[0] is not MORE else Unknown("the next item")


def _print(_machine: Machine, _given: Arguments, _node: ast.AST, _frame: Frame) -> Value:
    return None


_FUNCTIONS: Mapping[str, Callable[[Machine, Arguments, ast.AST, Frame], Value]] = {
    "len": _len,
    "list": _list,
    "tuple": _tuple,
    "set": _set,
    "frozenset": _set,
    "dict": make_dict,
    "zip": _zip,
    "enumerate": _enumerate,
    "reversed": _reversed,
    "sorted": _sorted,
    "any": _any,
    "all": _all,
    "map": _map,
    "filter": _filter,
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "delattr": _delattr,
    "super": _super,
    "type": _type,
    "vars": _vars,
    "locals": _vars,
    "globals": _globals,
    "callable": _callable,
    "eval": _eval,
    "iter": _iter,
    "next": _next,
    "print": _print,
}
