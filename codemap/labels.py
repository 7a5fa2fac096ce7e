"""What a host event's name says: which Python frame, built-in call, module call or operator it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache


class Kind(IntEnum):
    """The four kinds of event that a frame's children can be."""

    FRAME = 0
    """A Python function: `model.py(14): forward`."""
    BUILTIN = 1
    """A C function: `<built-in method permute of Tensor object at 0x...>`."""
    MODULE = 2
    """A module's call: `nn.Module: Conv2d_3`."""
    OPERATOR = 3
    """A dispatched operator with no Python call of its own: `aten::add`."""


@dataclass(frozen=True, slots=True)
class Label:
    """An event name taken apart. `name` is bare: the function, method, module class, or operator without namespace."""

    kind: Kind
    name: str
    owner: str = ""
    """The recorded file of a frame, the type of a built-in method's object, the namespace of an operator."""
    line: int = 0
    """The number of a frame; 0 for the others."""

    @property
    def key(self) -> str:
        """Kind and name as one string, the key of `Action.exact`."""
        return f"{'fbmo'[self.kind]}:{self.name}"

    @property
    def package(self) -> tuple[str, ...]:
        """For a frame, its file as a dotted path's parts: `("torch", "optim", "sgd")`; () for the others."""
        if self.kind is not Kind.FRAME:
            return ()
        path = self.owner.rpartition("site-packages/")[2].removesuffix(".py")
        return tuple(path.replace("\\", "/").split("/"))

    @property
    def file_is_frozen(self) -> bool:
        """Whether it is a frame of the interpreter's own frozen modules (imports, abstract base classes)."""
        return self.owner.startswith("<frozen")


_FRAME = re.compile(r"(?P<file>.+)\((?P<line>[0-9]{1,9})\): (?P<name>.+)", re.DOTALL)
_BUILTIN = re.compile(
    r"<built-in (?:method|function) (?P<name>[^\s>]+)(?: of (?P<owner>.+?)(?: object(?: at [^ ]*)?)?)?>", re.DOTALL
)
_MODULE = re.compile(r"nn\.Module: (?P<name>.+?)(?:_\d+)?")


@lru_cache(maxsize=65536)
def parse_label(name: str) -> Label:
    """The label of an event name; an unknown form counts as an operator of that name."""
    if name.startswith("nn.Module: ") and (module := _MODULE.fullmatch(name)):
        return Label(Kind.MODULE, module["name"])
    if name.startswith("<built-in") and (builtin := _BUILTIN.fullmatch(name)):
        return Label(Kind.BUILTIN, builtin["name"], builtin["owner"] or "")
    if frame := _FRAME.fullmatch(name):
        # Newer interpreters may give the qualified name; only its last part is the code's own.
        return Label(Kind.FRAME, frame["name"].rsplit(".", 1)[-1], frame["file"], int(frame["line"]))
    namespace, colons, bare = name.rpartition("::")
    return Label(Kind.OPERATOR, bare, namespace) if colons else Label(Kind.OPERATOR, name)
