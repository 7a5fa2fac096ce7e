"""Classes of the workspace: their bodies, their bases, where an attribute comes from."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .layers import layer_name
from .signatures import Arguments
from .values import (
    BoundMethod,
    ClassValue,
    Frame,
    FunctionValue,
    LibraryValue,
    Names,
    NativeMethod,
    ObjectValue,
    Role,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from .machine import Machine

_MODULE_BASES = (
    "LightningModule",
    "PreTrainedModel",
    "ScriptModule",
    "BaseModule",
    "GraphModule",
    "FlashAttention",
    "QuantStub",
    "DeQuantStub",
    "FloatFunctional",
)
_MODEL_LIBRARIES = ("torchvision.models.", "torchvision.ops.", "timm.", "torch.ao.nn.", "torch.ao.quantization.Q")
_NO_MODULES = ("Config", "Weights", "Params", "Cfg", "Enum", "Type")
_DATA_BASES = frozenset(("NamedTuple", "BaseModel", "BaseSettings", "TypedDict", "Struct"))
ABSENT = Unknown("no such attribute")


def mro(machine: Machine, cls: ClassValue) -> tuple[ClassValue | LibraryValue, ...]:
    """The class and its bases in the order in which Python looks attributes up (C3 where it can be had)."""
    if cls.mro is None:
        cls.mro = (cls,)  # a class that is its own base ends here
        found: list[ClassValue | LibraryValue] = []
        lines: list[list[ClassValue | LibraryValue]] = []
        for node in cls.node.bases:
            base = machine.evaluate(node, cls.frame)
            if isinstance(base, ClassValue) and base is not cls:
                found.append(base)
                lines.append(list(mro(machine, base)))
            elif isinstance(base, LibraryValue):
                found.append(base)
                lines.append([base])
        cls.mro = (cls, *_merged([*lines, found]))
    return cls.mro


def _merged(lines: list[list[ClassValue | LibraryValue]]) -> list[ClassValue | LibraryValue]:
    found: list[ClassValue | LibraryValue] = []
    lines = [list(line) for line in lines if line]
    while lines:
        head = next((line[0] for line in lines if not any(line[0] in other[1:] for other in lines)), lines[0][0])
        found.append(head)
        lines = [rest for line in lines if (rest := [one for one in line if one is not head and one != head])]
    return found


def body(machine: Machine, cls: ClassValue) -> dict[str, Value]:
    """The names that the class body binds."""
    if cls.attributes is None:
        frame = Frame(cls.path, Names(), cls.frame, owner=cls)
        cls.attributes = frame.names  # a body that asks for its own class sees what there is
        with machine.heap.for_good():
            machine.execute(cls.node.body, frame)
        if is_enumeration(machine, cls):
            _make_members(cls)
    return cls.attributes


def is_enumeration(machine: Machine, cls: ClassValue) -> bool:
    """Whether a class derives from one of `enum`."""
    return any(isinstance(base, LibraryValue) and base.dotted.startswith("enum.") for base in mro(machine, cls))


def members(machine: Machine, cls: ClassValue) -> dict[str, ObjectValue]:
    """The members of an enumeration by name."""
    return {name: one for name, one in body(machine, cls).items() if isinstance(one, ObjectValue)}


def _make_members(cls: ClassValue) -> None:
    """The constants of an enumeration are its members."""
    assert cls.attributes is not None
    for name, value in list(cls.attributes.items()):
        if not name.startswith("_") and not isinstance(value, FunctionValue):
            cls.attributes[name] = ObjectValue(cls, {"name": name, "value": value})


def find(machine: Machine, cls: ClassValue, name: str, behind: ClassValue | None = None) -> Value:
    """An attribute of a class, unbound; a `LibraryValue` of the first library base if no class of the workspace has
    it; `ABSENT` if there is none. With `behind`, only the bases that come after that one are asked."""
    line = mro(machine, cls)
    if behind is not None:
        line = line[line.index(behind) + 1 :] if behind in line else line[1:]
    library = next((base for base in line if isinstance(base, LibraryValue)), None)
    for base in line:
        if isinstance(base, ClassValue):
            attributes = body(machine, base)
            if name in attributes:
                return attributes[name]
        elif name == "__init__" and base.dotted not in ("object", "abc.ABC", "typing.Generic", "builtins.object"):
            return LibraryValue(f"{base.dotted}.__init__")
    return LibraryValue(f"{library.dotted}.{name}") if library is not None else ABSENT


def bind_to(machine: Machine, value: Value, of: Value, cls: ClassValue | None, node: ast.AST, frame: Frame) -> Value:
    """What an attribute found on a class gives when taken from an instance (`cls` None) or from a class."""
    if not isinstance(value, FunctionValue):
        return value
    if value.role is Role.STATIC:
        return value
    if value.role is Role.CLASS:
        return BoundMethod(value, cls if cls is not None else getattr(of, "cls", of))
    if cls is not None:
        return value
    if value.role is Role.PROPERTY:
        return machine.call(BoundMethod(value, of), Arguments(), node, frame)
    return BoundMethod(value, of)


def is_module_class(machine: Machine, cls: ClassValue) -> bool:
    """Whether instances are modules: a base of `torch.nn` or the like, or a `forward` and a base that is not known."""
    line = mro(machine, cls)
    libraries = [base for base in line if isinstance(base, LibraryValue)]
    if any(is_module_base(base.dotted) for base in libraries):
        return True
    has_unknown_base = any(not isinstance(machine.evaluate(node, cls.frame), ClassValue) for node in cls.node.bases)
    has_forward = any(isinstance(base, ClassValue) and "forward" in body(machine, base) for base in line)
    is_function = any(base.dotted.startswith("torch.autograd") for base in libraries)
    return has_forward and has_unknown_base and not is_function


def is_module_base(dotted: str) -> bool:
    """Whether a library's class is one of modules."""
    name = dotted.rpartition(".")[2]
    is_models = dotted.startswith(_MODEL_LIBRARIES) and name[:1].isupper() and not name.endswith(_NO_MODULES)
    return bool(layer_name(dotted)) or name.endswith(_MODULE_BASES) or is_models


def library_base(machine: Machine, cls: ClassValue) -> str:
    """The dotted name of the first library base that makes instances modules; `torch.nn.Module` if none says so."""
    for base in mro(machine, cls):
        if isinstance(base, LibraryValue) and is_module_base(base.dotted):
            name = layer_name(base.dotted)
            return f"torch.nn.{name}" if name else base.dotted
    return "torch.nn.Module"


def is_data_class(machine: Machine, cls: ClassValue) -> bool:
    """Whether the constructor comes from the fields of the body."""
    line = mro(machine, cls)
    return any(base.is_data if isinstance(base, ClassValue) else base.name in _DATA_BASES for base in line)


def fields_of(machine: Machine, cls: ClassValue) -> list[tuple[str, ast.expr | None, Frame]]:
    """The fields of a dataclass, of its bases first: name, default, and the frame that the default is to be seen in."""
    found: dict[str, tuple[str, ast.expr | None, Frame]] = {}
    for base in reversed(mro(machine, cls)):
        if not isinstance(base, ClassValue):
            continue
        names = body(machine, base)
        frame = Frame(base.path, Names(names), base.frame, owner=base)
        for statement in base.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                annotation = ast.dump(statement.annotation) if statement.value is None else ""
                if "ClassVar" not in annotation:
                    found[statement.target.id] = (statement.target.id, statement.value, frame)
    return list(found.values())


def native(of: Value, name: str, found: LibraryValue) -> NativeMethod:
    """A method that an instance has from a library."""
    return NativeMethod(of, name, found.dotted.rpartition(".")[0])
