"""Models as a recording run saw them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..analyzer.trace.recording import RecordedModule, Recording
from .building.roots import MOST_LEVELS
from .knowledge import Knowledge
from .modules import At, Basis, Module, Tensor
from .paths import by_basename, likest, path_parts
from .statements import qualname_at

_MOST_MODULES = 20_000
_MOST_MODELS = 200


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a recording says of models."""

    roots: tuple[Module, ...]
    tops: tuple[str, ...]
    """The path in the recording of each root."""
    notes: tuple[str, ...]
    """What of it is left out, and why."""


def recorded_models(recording: Recording, known: Knowledge, static: Sequence[Module] = ()) -> Recorded:
    """The recorded models; files are taken for those of the workspace with the longest common ending. `static` are the
    models that the source builds: what is a child there is one."""
    by_path, cut, notes = usable(recording.modules)
    root = by_path.get("")
    fitting = [one for one in static if root is not None and one.class_name == root.class_name]
    beside = _beside_the_model(list(by_path.values()), {child.name for one in fitting for child in one.children})
    below: dict[str, list[RecordedModule]] = {}
    tops: list[RecordedModule] = []
    for module in by_path.values():
        parent = None if module.path in beside else parent_of(module.path, by_path)
        if parent is None:
            tops.append(module)
        else:
            below.setdefault(parent, []).append(module)
    if len(tops) > _MOST_MODELS:
        notes.append(f"{len(tops) - _MOST_MODELS} more models of the recording are left out")
        del tops[_MOST_MODELS:]
    named = by_basename(known.workspace.paths())
    files = tuple(likest(file, named.get(path_parts(file)[-1], ())) for file in recording.files)
    conversion = _Conversion(below, cut, beside, files, known)
    return Recorded(
        tuple(conversion.module(top, top.path) for top in tops), tuple(top.path for top in tops), tuple(notes)
    )


def usable(modules: Sequence[RecordedModule]) -> tuple[dict[str, RecordedModule], frozenset[str], list[str]]:
    """The modules by path, as many and as deep as can be shown; the paths of those below which some are left out; and
    what is left out, in words. Paths tell modules apart: of several with one path the first counts."""
    found: dict[str, RecordedModule] = {}
    without: set[str] = set()
    twice = deep = more = 0
    for module in modules:
        if module.path in found:
            twice += 1
        elif module.path.count(".") > MOST_LEVELS:
            deep += 1
            without.add(".".join(module.path.split(".", MOST_LEVELS + 2)[: MOST_LEVELS + 2]))
        elif len(found) >= _MOST_MODULES:
            more += 1
            without.add(module.path)
        else:
            found[module.path] = module
    said = (
        (twice, "have the path of another one"),
        (deep, f"lie deeper than {MOST_LEVELS} levels"),
        (more, f"follow the first {_MOST_MODULES}"),
    )
    cut = frozenset(parent for path in without if (parent := parent_of(path, found)) is not None)
    return found, cut, [f"{count} modules of the recording are left out: they {why}" for count, why in said if count]


def _beside_the_model(modules: Sequence[RecordedModule], built: Collection[str]) -> frozenset[str]:
    """Names of whole modules that ran beside the only model with parameters, as a loss does.

    The paths of that model do not begin with a name of its own, so theirs look like its children's. They come before or
    behind all that is known to be a child: what a line put there, or the source builds there. They hold no tensors, and
    nothing of the model is given their outputs.
    """
    names: dict[str, list[RecordedModule]] = {}
    for module in modules:
        names.setdefault(module.path.partition(".")[0], []).append(module)
    order = list(names)
    certain = [
        at
        for at, name in enumerate(order)
        if name == "" or name in built or any(one.path == name and one.defined_line > 0 for one in names[name])
    ]
    if "" not in names or len(certain) < 2:
        return frozenset()
    outside = {*order[: certain[0]], *order[certain[-1] + 1 :]}
    return frozenset(
        name
        for name in outside
        if any(one.path == name for one in names[name])
        and not any(one.parameters for one in names[name])
        and all(path.partition(".")[0] in outside for one in names[name] for path in one.feeds)
    )


def parent_of(path: str, known: Mapping[str, RecordedModule]) -> str | None:
    """The nearest recorded module above a path; None for the root of a model."""
    while path:
        path = path.rpartition(".")[0]
        if path in known:
            return path
    return None


@dataclass(frozen=True, slots=True)
class _Conversion:
    below: Mapping[str, Sequence[RecordedModule]]
    """The children by the path of their parent."""
    cut: frozenset[str]
    """The paths of modules below which some are left out."""
    beside: frozenset[str]
    files: tuple[str, ...]
    known: Knowledge

    def module(self, module: RecordedModule, root: str) -> Module:
        """A recorded module as a value; `root` is the path of its model."""
        children = tuple(self.module(child, root) for child in self.below.get(module.path, ()))
        feeds = (path for path in module.feeds if root or path.partition(".")[0] not in self.beside)
        return Module(
            path=_relative(module.path, root),
            class_name=module.class_name,
            origin=module.origin,
            basis=Basis.RECORDING,
            defined_at=_at(module.file, module.line, self.files, self.known),
            built_at=_at(module.defined_file, module.defined_line, self.files, self.known),
            arguments=dict(module.arguments),
            tensors=tuple(Tensor(p.name, p.shape, p.dtype, p.is_trainable, p.is_buffer) for p in module.parameters),
            children=children,
            feeds=tuple(_relative(path, root) for path in feeds),
            inputs=module.inputs,
            outputs=module.outputs,
            calls_per_step=module.calls_per_step,
            has_more=module.path in self.cut,
        )


def _relative(path: str, root: str) -> str:
    return path.removeprefix(root).removeprefix(".") if root else path


def _at(file: int, line: int, files: tuple[str, ...], known: Knowledge) -> At | None:
    path = files[file] if 0 <= file < len(files) else ""
    if not path or line <= 0:
        return None
    return At(path, line, qualname_at(known.file(path), line))
