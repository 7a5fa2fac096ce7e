"""The methods of plain values and of objects where their results are known and small; the names of Python's own
functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .operators import FAULTS, MOST_ITEMS, items_of
from .signatures import Arguments
from .values import (
    MORE,
    LibraryValue,
    NativeMethod,
    ObjectValue,
    Unknown,
    Value,
    is_known,
    is_same,
)

if TYPE_CHECKING:
    from .machine import Machine

_WORDS_OF_BUILTINS = """
abs all any bool callable classmethod delattr dict divmod enumerate eval filter float format frozenset getattr
globals hasattr hash id int isinstance issubclass iter len list locals map max min next object open ord chr pow
print property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip
bytes complex input exec memoryview bytearray Exception ValueError TypeError KeyError IndexError
NotImplementedError RuntimeError AttributeError ImportError StopIteration AssertionError OSError NotImplemented
ModuleNotFoundError DeprecationWarning UserWarning FutureWarning Warning BaseException
"""
BUILTINS = frozenset(_WORDS_OF_BUILTINS.split())
_WORDS_OF_TEXT = """
lower upper title capitalize strip lstrip rstrip split rsplit startswith endswith removeprefix removesuffix
isdigit isalpha isupper islower partition rpartition count find index casefold splitlines isidentifier isnumeric
"""
_TEXT = frozenset(_WORDS_OF_TEXT.split())
_WORDS_OF_READS = """
index count union intersection difference issubset issuperset copy bit_length is_integer
"""
_READS = frozenset(_WORDS_OF_READS.split())
_MOST_TEXT = 10_000


def call_on_plain(machine: Machine, of: Value, name: str, given: Arguments) -> Value:
    """What a method of a list, dict, string or number gives."""
    if isinstance(of, list) and name in _LISTS:
        machine.heap.write(of)
        return _LISTS[name](machine, of, given)
    if isinstance(of, dict) and name in _DICTS:
        if name in ("update", "pop", "setdefault", "clear"):
            machine.heap.write(of)
        return _DICTS[name](machine, of, given)
    if isinstance(of, set) and name in ("add", "update", "discard"):
        return _add_to_set(of, given)
    if isinstance(of, str):
        return _of_text(machine, of, name, given)
    if name in _READS and all(is_known(one) for one in given.args):
        try:
            return getattr(of, name)(*given.args)
        except FAULTS:
            return Unknown("cannot be computed")
    return Unknown(f"what {name}() gives")


def _of_text(machine: Machine, of: str, name: str, given: Arguments) -> Value:
    if not all(is_known(one) for one in (*given.args, *given.kwargs.values())):
        return Unknown("a text that is not known")
    if name == "join":
        parts = items_of(machine, given.get(0, "iterable"))
        texts = [part for part in parts or () if isinstance(part, str)]
        is_whole = parts is not None and len(texts) == len(parts)
        return (
            of.join(texts)
            if is_whole and sum(map(len, texts)) + len(of) * len(texts) < _MOST_TEXT
            else Unknown("a text")
        )
    if name == "format":
        return _formatted(of, given)
    if name == "replace" and len(given.args) >= 2 and len(of) * max(len(str(given.args[1])), 1) > _MOST_TEXT:
        return Unknown("too large")
    if name not in _TEXT and name != "replace":
        return Unknown(f"what {name}() gives")
    try:
        return getattr(of, name)(*given.args, **given.kwargs)
    except FAULTS:
        return Unknown("cannot be computed")


def _formatted(of: str, given: Arguments) -> Value:
    """`"layer{}".format(i)`, without any form that could blow it up."""
    is_plain = all(isinstance(one, (str, int, float)) for one in (*given.args, *given.kwargs.values()))
    if ":" in of or "!" in of or "[" in of or "." in of.partition("{")[2] or not is_plain:
        return Unknown("a text that is not known")
    try:
        text = of.format(*given.args, **given.kwargs)
    except FAULTS:
        return Unknown("cannot be computed")
    return text if len(text) < _MOST_TEXT else Unknown("too large")


def _append(_machine: Machine, of: list[Value], given: Arguments) -> Value:
    of.append(given.get(0, "object"))
    return None


def _extend(machine: Machine, of: list[Value], given: Arguments) -> Value:
    items = items_of(machine, given.get(0, "iterable"))
    of.extend([MORE] if items is None or len(of) + len(items) > MOST_ITEMS else items)
    machine.budget.step(len(items or ()))
    return None


def _insert(_machine: Machine, of: list[Value], given: Arguments) -> Value:
    at = given.get(0, "index")
    if type(at) is int:
        of.insert(at, given.get(1, "object"))
    else:
        of.append(MORE)
    return None


def _pop(_machine: Machine, of: list[Value], given: Arguments) -> Value:
    at = given.get(0, "index", -1)
    if type(at) is not int or not -len(of) <= at < len(of) or MORE in of:
        return Unknown("an item that is not known")
    return of.pop(at)


def _reverse(_machine: Machine, of: list[Value], _given: Arguments) -> Value:
    of.reverse()
    return None


def _sort(_machine: Machine, of: list[Value], given: Arguments) -> Value:
    try:
        of.sort(reverse=bool(given.kwargs.get("reverse", False)))  # pyright: ignore[reportCallIssue, reportArgumentType]
    except TypeError:
        of[:] = [Unknown("an item of a list in an order that is not known") for _ in of]
    return None


def _clear(_machine: Machine, of: list[Value], _given: Arguments) -> Value:
    of.clear()
    return None


def _remove(_machine: Machine, of: list[Value], given: Arguments) -> Value:
    at = next((at for at, item in enumerate(of) if is_same(item, given.get(0, "value"))), None)
    if at is not None:
        of.pop(at)
    return None


_LISTS: Mapping[str, Callable[[Machine, list[Value], Arguments], Value]] = {
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "reverse": _reverse,
    "sort": _sort,
    "clear": _clear,
    "remove": _remove,
    "copy": lambda _machine, of, _given: list(of),
}


def _get(_machine: Machine, of: dict[Value, Value], given: Arguments) -> Value:
    key, default = given.get(0, "key"), given.get(1, "default")
    try:
        if isinstance(key, Unknown):
            return Unknown("an item of which the key is not known")
        return of[key] if key in of else Unknown("there may be such an item") if MORE in of else default
    except TypeError:
        return Unknown("a key that cannot be one")


def _pop_item(machine: Machine, of: dict[Value, Value], given: Arguments) -> Value:
    value = _get(machine, of, given)
    key = given.get(0, "key")
    if not isinstance(key, (Unknown, list, dict, set)):
        of.pop(key, None)
    return value


def _update(machine: Machine, of: dict[Value, Value], given: Arguments) -> Value:
    other = given.args[0] if given.args else {}
    if isinstance(other, ObjectValue):
        other = dict(other.attributes)
    if isinstance(other, (list, tuple)):
        other = {pair[0]: pair[1] for pair in other if isinstance(pair, tuple) and len(pair) == 2}
    merged: dict[Value, Value] = {**other} if isinstance(other, dict) else {MORE: MORE}
    of.update(merged)
    of.update(given.kwargs)
    machine.budget.step(len(of) // 8)
    return None


def _setdefault(_machine: Machine, of: dict[Value, Value], given: Arguments) -> Value:
    key = given.get(0, "key")
    if isinstance(key, (Unknown, list, dict, set)):
        return Unknown("an item of which the key is not known")
    return of.setdefault(key, given.get(1, "default"))


def _clear_dict(_machine: Machine, of: dict[Value, Value], _given: Arguments) -> Value:
    of.clear()
    return None


_DICTS: Mapping[str, Callable[[Machine, dict[Value, Value], Arguments], Value]] = {
    "get": _get,
    "pop": _pop_item,
    "update": _update,
    "setdefault": _setdefault,
    "clear": _clear_dict,
    "keys": lambda _machine, of, _given: list(of),
    "values": lambda _machine, of, _given: list(of.values()),
    "items": lambda _machine, of, _given: [MORE if key is MORE else (key, value) for key, value in of.items()],
    "copy": lambda _machine, of, _given: dict(of),
}


def _add_to_set(of: set[Value], given: Arguments) -> Value:
    try:
        of.update(given.args)
    except TypeError:
        of.add(MORE)
    return None


def call_on_object(machine: Machine, held: ObjectValue, method: NativeMethod, given: Arguments) -> Value:
    """Methods that an object has from a library: those of argument parsers, and of configurations that are dicts."""
    name = method.name
    if held.dotted == "argparse.ArgumentParser":
        return _on_parser(held, name, given)
    if name == "__init__":
        held.attributes.update(given.kwargs)
        return None
    if name == "__setattr__" and len(given.args) == 2 and isinstance(given.args[0], str):
        held.attributes[given.args[0]] = given.args[1]
        return None
    if name in ("get", "items", "keys", "values", "pop", "update", "setdefault", "copy"):
        return _DICTS[name](machine, held.attributes, given)  # pyright: ignore[reportArgumentType]
    if name in ("to_dict", "_asdict", "dict", "model_dump"):
        return dict(held.attributes)
    if name == "_replace":
        return ObjectValue(held.cls, {**held.attributes, **given.kwargs}, held.dotted)
    return Unknown(f"what {name}() gives")


def _on_parser(parser: ObjectValue, name: str, given: Arguments) -> Value:
    """`add_argument`, `parse_args` and the like: arguments have their defaults."""
    match name:
        case "add_argument":
            _add_argument(parser, given)
            return Unknown("an argument")
        case "add_argument_group" | "add_mutually_exclusive_group":
            return parser
        case "set_defaults":
            parser.attributes.update(given.kwargs)
            return None
        case "parse_args":
            return ObjectValue(None, dict(parser.attributes), "argparse.Namespace")
        case "parse_known_args":
            return ObjectValue(None, dict(parser.attributes), "argparse.Namespace"), []
        case _:
            return Unknown(f"what {name}() gives")


def _add_argument(parser: ObjectValue, given: Arguments) -> None:
    flags = [one for one in given.args if isinstance(one, str)]
    long = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
    name = given.kwargs.get("dest", long.lstrip("-").replace("-", "_"))
    if not isinstance(name, str) or not name:
        return
    action = given.kwargs.get("action")
    is_switch = action in ("store_true", "store_false")
    default: Value = action == "store_false" if is_switch else None
    if not is_switch and (not flags or not flags[0].startswith("-") or given.kwargs.get("required") is True):
        default = Unknown(f"{name} is given on the command line")
    value = given.kwargs.get("default", default)
    kind = given.kwargs.get("type")
    if isinstance(value, str) and isinstance(kind, LibraryValue) and kind.dotted in ("builtins.int", "builtins.float"):
        try:
            value = int(value) if kind.dotted == "builtins.int" else float(value)
        except ValueError:
            value = Unknown("cannot be converted")
    parser.attributes[name] = value
