"""A model's structure as values: what patterns, the detector and the language model are given as its architecture.

`models.py` makes them, from source, from a recording run, from a trace, or from all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import prod

Shape = tuple[int | None, ...] | None
"""Sizes of a tensor; a single one, or all of them, may not be known."""

_BYTES = {
    **dict.fromkeys(("float64", "int64", "complex64"), 8),
    **dict.fromkeys(("float32", "int32"), 4),
    **dict.fromkeys(("float16", "bfloat16", "int16"), 2),
    **dict.fromkeys(("int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2"), 1),
    "complex128": 16,
}


def shape_of(sizes: Iterable[object] | None) -> Shape:
    """A shape in which sizes that are no whole numbers are not known."""
    return None if sizes is None else tuple(size if isinstance(size, int) else None for size in sizes)


def share_pct(us: float | None, step_us: float) -> float | None:
    """A time as a share of the step; None if either is not known."""
    return 100.0 * us / step_us if us is not None and step_us > 0 else None


class Basis(str, Enum):
    """What the facts about a module come from."""

    SOURCE = "source"
    RECORDING = "recording"
    """The file that a recording run writes beside its trace: exact."""
    BOTH = "source and recording"
    """Sizes as recorded, places as the source has them."""
    TRACE = "trace"
    """The module calls of a trace alone: classes and nesting."""


@dataclass(frozen=True, slots=True)
class At:
    """A line of the workspace. `qualname` is the function or class that holds it, "<module>" at top level."""

    path: str
    line: int
    qualname: str = ""
    cell: int | None = None
    """Of a notebook, the cell whose lines are counted; None for a file, and inside the program."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter or buffer of one module itself."""

    name: str
    shape: Shape
    dtype: str = ""
    is_trainable: bool = True
    is_buffer: bool = False
    is_shared: bool = False
    """Whether it is another module's too, which comes first; it counts there."""

    @property
    def count(self) -> int | None:
        """Its elements; None if that is not known."""
        if self.shape is None:
            return None
        sizes = [size for size in self.shape if size is not None]
        return prod(sizes) if len(sizes) == len(self.shape) else None

    @property
    def bytes(self) -> int | None:
        """Its size in memory; None if that is not known."""
        width, count = _BYTES.get(self.dtype), self.count
        return None if width is None or count is None else width * count


@dataclass(frozen=True, slots=True)
class Totals:
    """What a module holds, with all below it; each shared tensor once."""

    parameters: int
    trainable: int
    bytes: int
    """Of parameters and buffers."""
    is_whole: bool
    """Whether all of it is known: the figures are lower bounds otherwise."""


@dataclass(frozen=True, slots=True)
class Module:
    """One module of a model."""

    path: str
    """As in `named_modules()`; "" for the root."""
    class_name: str
    origin: str = ""
    """The class's dotted name: `torch.nn.Conv2d`, `src.model.Block`."""
    basis: Basis = Basis.SOURCE
    defined_at: At | None = None
    """The class of the workspace; as recorded, the line of its `forward`."""
    built_at: At | None = None
    """The call of its constructor; as recorded, the line that put it into its parent."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Constructor arguments by name, as text; "?" for what is not known. As recorded, what it says of itself."""
    tensors: tuple[Tensor, ...] = ()
    """Its own."""
    children: tuple[Module, ...] = ()
    feeds: tuple[str, ...] = ()
    """Paths of the modules that get its output: of those that the same module calls, and from one innermost module to
    another."""
    inputs: tuple[Shape, ...] = ()
    """Of the tensors that its last call was given; () where no call is known."""
    outputs: tuple[Shape, ...] = ()
    calls_per_step: float | None = None
    call_order: int | None = None
    """Its place in the order of first calls; None where that is not known."""
    us_per_step: float | None = None
    """Time of a steady step that goes into its calls, forward and backward; None without a trace."""
    step_pct: float | None = None
    """The same as a share of the step."""
    is_certain: bool = True
    """False where the source alone does not tell whether the model has it."""
    has_more: bool = False
    """Whether further children follow, whose number is not known."""
    note: str = ""
    """What a reader has to know: that its inside is a library's, that its constructor could not be followed."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    def walk(self) -> Iterator[Module]:
        """The module and all below it, as `named_modules()` goes."""
        waiting: list[Module] = [self]
        while waiting:
            current = waiting.pop()
            yield current
            waiting.extend(reversed(current.children))

    def totals(self) -> Totals:
        """Parameters and bytes of the whole subtree."""
        own = [tensor for module in self.walk() for tensor in module.tensors if not tensor.is_shared]
        counts = [(tensor, tensor.count or 0) for tensor in own if not tensor.is_buffer]
        is_open = any(module.has_more or module.note or not module.is_certain for module in self.walk())
        return Totals(
            parameters=sum(count for _, count in counts),
            trainable=sum(count for tensor, count in counts if tensor.is_trainable),
            bytes=sum(tensor.bytes or 0 for tensor in own),
            is_whole=not is_open and all(tensor.bytes is not None for tensor in own),
        )


@dataclass(frozen=True, slots=True)
class Model:
    """A whole model."""

    root: Module
    times_from: str = ""
    """What the times come from, in words; "" without times."""
    step_us: float | None = None
    """The steady step of the trace."""
    notes: tuple[str, ...] = ()
    """What could not be found out."""
