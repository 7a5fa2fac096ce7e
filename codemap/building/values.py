"""The values that evaluated source has.

Plain Python values stand for themselves: numbers, strings, None, tuples, lists, dicts, sets, ranges and slices, whose
items are values again. Everything else is one of the classes below. A list that ends in `MORE` has further items whose
number is not known; a dict with the key `MORE` has further keys.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

Value = object


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unknown:
    """A value that the source alone does not tell."""

    why: str = ""
    alternatives: tuple[Value, ...] = ()
    """What it may be, as far as known: of two branches of an `if` that cannot be decided, the value of each."""


MORE = Unknown("further items")


@dataclass(frozen=True, slots=True)
class LibraryValue:
    """Something of a library by its dotted name: a module, class, function or constant (`torch.nn.Conv2d`)."""

    dotted: str

    @property
    def name(self) -> str:
        """The last part."""
        return self.dotted.rpartition(".")[2]


class Kind(str, Enum):
    """What a tensor is to the module that holds it."""

    PLAIN = ""
    PARAMETER = "parameter"
    BUFFER = "buffer"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorValue:
    """A tensor. `shape` is None where the number of axes is not known; a single size may be `Unknown`."""

    shape: tuple[Value, ...] | None
    dtype: str = "float32"
    """Without `torch.`; "" if not known."""
    kind: Kind = Kind.PLAIN
    is_trainable: bool = False
    data: tuple[Value, ...] | None = None
    """The numbers of a short vector, where they are known."""
    sources: frozenset[ModuleValue] = frozenset()
    """The modules whose outputs it was computed from, with no other module in between."""

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The shape, if every size is known."""
        if self.shape is None or not all(type(size) is int for size in self.shape):
            return None
        return tuple(size for size in self.shape if isinstance(size, int))


class Role(str, Enum):
    """How a function of a class body is bound."""

    PLAIN = ""
    STATIC = "static"
    CLASS = "class"
    PROPERTY = "property"


@dataclass(slots=True, eq=False, repr=False)
class Frame:
    """Names of a file, a class body or a running function."""

    path: str
    """The file, relative to the workspace."""
    names: Names
    parent: Frame | None = None
    """Where names are looked up next; None for a file."""
    function: FunctionValue | None = None
    owner: ClassValue | None = None
    """The class whose method runs: what `super()` starts from."""
    outer: frozenset[str] = frozenset()
    """Names declared `global` or `nonlocal`."""
    value: Value = None
    """What `return` gave."""
    returned: list[Value] = field(default_factory=list)
    """What was returned where it is not known whether that line is reached."""
    star_imports: list[str] = field(default_factory=list)
    """Libraries of which everything was imported."""

    @property
    def file(self) -> Frame:
        """The frame of the file."""
        frame = self
        while frame.parent is not None:
            frame = frame.parent
        return frame


class Names(dict[str, Value]):
    """The names of a frame: one bound in a single branch counts as bound after it."""


@dataclass(slots=True, eq=False, repr=False)
class FunctionValue:
    """A function, method or lambda of the workspace."""

    path: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    frame: Frame
    """Where it was defined."""
    defaults: dict[str, Value]
    owner: ClassValue | None = None
    role: Role = Role.PLAIN

    @property
    def name(self) -> str:
        """Its own name."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name


@dataclass(slots=True, eq=False, repr=False)
class ClassValue:
    """A class of the workspace. Its body is run when first asked for."""

    name: str
    path: str
    node: ast.ClassDef
    frame: Frame
    """Where it was defined."""
    attributes: dict[str, Value] | None = None
    mro: tuple[ClassValue | LibraryValue, ...] | None = None
    """Itself, then its bases in the order in which attributes are looked up; None until asked for."""
    is_data: bool = False
    """Whether it is a dataclass or the like, whose constructor comes from its fields."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundMethod:
    """A method and the object it was taken from."""

    function: FunctionValue
    of: Value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NativeMethod:
    """A method of a plain value, or one that a module or object has from a library."""

    of: Value
    name: str
    dotted: str = ""
    """The library class it belongs to; "" for the value's own type."""
    owner: ClassValue | None = None
    """The dataclass whose constructor it is."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartialValue:
    """`functools.partial(callee, *args, **kwargs)`."""

    callee: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SuperValue:
    """`super()`: attributes of `of`, looked up behind `owner`."""

    owner: ClassValue
    of: Value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileValue:
    """An imported file of the workspace."""

    path: str
    frame: Frame


@dataclass(frozen=True, slots=True)
class ImportValue:
    """An imported name, looked up when first used."""

    dotted: str
    """What follows the dots of a relative import."""
    level: int
    name: str = ""
    """The name taken `from` it; "" for the module itself."""


@dataclass(slots=True, eq=False, repr=False)
class ObjectValue:
    """An instance of a class of the workspace that is no module, a namespace, or an argument parser."""

    cls: ClassValue | None
    attributes: dict[str, Value]
    dotted: str = ""
    """The library class it is, or derives from."""


@dataclass(frozen=True, slots=True)
class Child:
    """A module held by another."""

    name: str
    module: ModuleValue
    is_certain: bool = True
    """False where it depends on what the source does not tell."""


@dataclass(slots=True, eq=False, repr=False)
class ModuleValue:
    """An `nn.Module` as its constructor left it, with what was changed on it since."""

    dotted: str
    """The library class that it is, or the first in its line of bases: `torch.nn.Conv2d`, `torch.nn.Module`."""
    cls: ClassValue | None = None
    """Its class, if that is one of the workspace."""
    path: str = ""
    """The file that builds it."""
    node: ast.AST | None = None
    """The constructor's call in that file; None where nothing in the source builds it."""
    arguments: dict[str, Value] = field(default_factory=dict)
    """The constructor's arguments by parameter, defaults too."""
    layer_arguments: dict[str, Value] = field(default_factory=dict)
    """Those of the library layer that it is or derives from."""
    attributes: dict[str, Value] = field(default_factory=dict)
    """In order of assignment: children, parameters, buffers, anything else. Items of a container are "0", "1", ..."""
    is_opaque: bool = False
    """Whether a library builds it and its inside is not known (`torchvision.models.resnet50()`)."""
    has_more: bool = False
    """Whether further items follow whose number is not known."""
    problem: str = ""
    """Why its constructor could not be followed to its end; "" if it was."""
    inputs: tuple[Value, ...] = ()
    """What the source was seen to call it with, if a tensor is among that."""

    @property
    def name(self) -> str:
        """Its class's bare name."""
        return self.cls.name if self.cls is not None else self.dotted.rpartition(".")[2]

    def children(self) -> Iterator[Child]:
        """The modules it holds, in order."""
        for name, value in self.attributes.items():
            if isinstance(value, ModuleValue):
                yield Child(name, value)
            elif isinstance(value, Unknown):
                found = next((one for one in value.alternatives if isinstance(one, ModuleValue)), None)
                if found is not None:
                    yield Child(name, found, is_certain=False)

    def walk(self) -> Iterator[ModuleValue]:
        """Itself and the modules below it, however deep, each once, in no particular order."""
        waiting: list[ModuleValue] = [self]
        seen: set[ModuleValue] = {self}
        while waiting:
            current = waiting.pop()
            yield current
            for child in current.children():
                if child.module not in seen:
                    seen.add(child.module)
                    waiting.append(child.module)

    def tensors(self) -> Iterator[tuple[str, TensorValue]]:
        """Its own parameters and buffers, without its children's."""
        for name, value in self.attributes.items():
            if isinstance(value, TensorValue) and value.kind is not Kind.PLAIN:
                yield name, value

    def items(self) -> list[Value]:
        """The modules of a container, `MORE` at the end if further ones follow."""
        found: list[Value] = [
            child.module if child.is_certain else Unknown("", (child.module,)) for child in self.children()
        ]
        return [*found, MORE] if self.has_more else found


def is_known(value: Value) -> bool:
    """Whether nothing of a value (of what it holds, three levels down) is unknown."""
    return _is_known(value, 3)


def _is_known(value: Value, depth: int) -> bool:
    if isinstance(value, Unknown):
        return False
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        return all(_is_known(item, depth - 1) for item in value)
    if depth and isinstance(value, dict):
        return all(_is_known(key, depth - 1) and _is_known(item, depth - 1) for key, item in value.items())
    return True


def join(values: list[Value]) -> Value:
    """One value for what may be any of several."""
    distinct: list[Value] = []
    why = ""
    for value in values:
        if isinstance(value, Unknown):
            why = why or value.why
            parts: tuple[Value, ...] = value.alternatives
        else:
            parts = (value,)
        for part in parts:
            if not any(is_same(part, other) for other in distinct):
                distinct.append(part)
    if len(distinct) == 1 and not any(isinstance(value, Unknown) for value in values):
        return distinct[0]
    return Unknown(why or "depends on what the source does not tell", tuple(distinct[:4]))


def is_same(one: Value, other: Value) -> bool:
    """Whether two values are one object, or equal constants."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(is_same(a, b) for a, b in zip(one, other, strict=True))
    return isinstance(one, (int, float, str, bytes, LibraryValue)) and one == other
