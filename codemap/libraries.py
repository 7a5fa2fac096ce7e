"""Time spent inside a library's model: which call of the program built it.

The library's files are none of the workspace's: they are named in words and never opened. What a reader can change is
the call that asks for the model.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from ..analyzer.findings import How
from ..analyzer.timeline.model import Phase, Timeline
from ..analyzer.trace.model import NONE, Category
from .building.layers import LAYERS
from .expressions import last_name
from .knowledge import Knowledge
from .labels import Kind, Label, parse_label
from .library_sites import Site, find_sites
from .nodes import children
from .recorded import RecordedFiles
from .statements import Inside, Place, statement_at

_BY_CLASS, _ONLY_ONE, _ONLY_MODEL = 0.8, 0.7, 0.4
"""Confidence in a site named like the module that ran; in the only one, where such a module ran; in the only model of a
program without modules of its own, where the trace shows none."""
_NO_MODEL_PARTS = re.compile(r"/(transforms|datasets|data|optim|scheduler|loss|utils|io|engine|trainers?)(/|\.py$)")
_CONTAINERS = frozenset({"DataParallel", "DistributedDataParallel", "OptimizedModule", "FullyShardedDataParallel"})
_SURE_STEM = 4
"""Letters that a module file's name and a model's name must share to count as alike."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a library that was running: what is known of the model it belongs to."""

    library: str
    """Top package; "" if only the module's class is known."""
    stem: str
    """Name of the model's file (`resnet`); "" if unknown."""
    class_name: str
    """Class of the outermost module of the library; "" if unknown."""
    innermost: str
    """In words, where inside the library."""


class Libraries:
    """Finds the calls that build library models, for one trace and one workspace."""

    def __init__(self, timeline: Timeline, known: Knowledge, files: RecordedFiles, own: Container[str]) -> None:
        """`own` holds the recorded paths of frames that are files of the workspace."""
        self._timeline = timeline
        self._own = own
        self._trace = timeline.trace
        self._known = known
        self._files = files
        self._found: tuple[Site, ...] | None = None
        self._is_own: dict[str, bool] = {}
        self._parts: dict[int, _Part | None] = {}
        """By innermost Python event."""
        self._chosen: dict[tuple[str, ...], Site | None] = {}
        self._may_tell = any(_is_library_name(name) for name in self._trace.names)

    @property
    def _sites(self) -> tuple[Site, ...]:
        if self._found is None:
            self._found = find_sites(self._known, self._files)
        return self._found

    def explain(self, row: int, place: Place) -> Place:
        """`place` with the library's model that `row` ran in below it, if it ran in one."""
        part = self._part(int(self._timeline.tree.parent[row]))
        if part is None:
            return place
        site = self._choose(part, place)
        if site is None and not part.library:
            return place
        return replace(place, inside=Inside(part.innermost, site.location if site is not None else None))

    def locate(self, row: int) -> Place | None:
        """The call that built the library model in which `row` ran, for an event that nothing else places."""
        part = self._part(row)
        if part is not None:
            site = self._choose(part, None)
            how = How.MODULE
            confidence = _BY_CLASS if site is not None and _likeness(part, site) else _ONLY_ONE
        else:
            site, how, confidence = self._only_model(row), How.OPERATOR, _ONLY_MODEL
        if site is None:
            return None
        location = replace(site.location, how=how, confidence=confidence)
        inside = Inside(part.innermost if part is not None else "the model that is built here", location)
        return Place(location, location.line, (), "the model that is built here runs it", inside)

    # What ran

    def _part(self, row: int) -> _Part | None:
        """The library's model in which the host event `row` (NONE for no event) ran, below the workspace's code."""
        python = int(self._timeline.tree.python[row]) if row != NONE else NONE
        if python == NONE or not self._may_tell:
            return None
        if python not in self._parts:
            self._parts[python] = self._part_of(python)
        return self._parts[python]

    def _part_of(self, python: int) -> _Part | None:
        labels: list[Label] = []
        for outer in (python, *self._timeline.tree.ancestors(python)):
            if self._trace.cat[outer] != Category.PYTHON_FUNCTION:
                continue
            label = parse_label(self._trace.name_of(outer))
            if label.owner in self._own or (label.kind is Kind.MODULE and self._is_defined_here(label.name)):
                break
            labels.append(label)
        frames = [label for label in labels if label.kind is Kind.FRAME and _is_model_code(label)]
        modules = [label.name for label in labels if label.kind is Kind.MODULE and _is_foreign_class(label.name)]
        if not modules:
            return None
        if not frames:
            return None if any(label.kind is Kind.FRAME for label in labels) else _of_module(modules)
        inner, outer = frames[0], frames[-1]
        words = f"{_cut(inner.owner)}:{inner.line} ({inner.name})"
        return _Part(outer.package[0], outer.package[-1].lower(), modules[-1], words)

    def _is_defined_here(self, name: str) -> bool:
        if name not in self._is_own:
            self._is_own[name] = any(self._files.facts(path).defines_class(name) for path in self._files.holding(name))
        return self._is_own[name]

    # What built it

    def _choose(self, part: _Part, place: Place | None) -> Site | None:
        """The one call that can have built the model; None where none or several can."""
        called = self._names_called(place) if place is not None else frozenset()
        key = part.library, part.stem, part.class_name, *sorted(called)
        if key not in self._chosen:
            fitting = [site for site in self._sites if _may_build(site, part)]
            ranks = [(2 * _likeness(part, site) + (site.target in called), site) for site in fitting]
            best = max((rank for rank, _ in ranks), default=0)
            first = [site for rank, site in ranks if rank == best]
            self._chosen[key] = first[0] if len({site.location for site in first}) == 1 else None
        return self._chosen[key]

    def _names_called(self, place: Place) -> frozenset[str]:
        """The bare names that a place's statement calls: `backbone` of `self.backbone(x)`."""
        statement = statement_at(self._known.file(place.location.path), place.line)
        pending: list[ast.AST] = [statement] if statement is not None else []
        names = set()
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Call):
                names.add(last_name(node.func))
            pending.extend(child for child in children(node) if not isinstance(child, ast.stmt))
        return frozenset(names - {""})

    def _only_model(self, row: int) -> Site | None:
        """The only call that builds a model in a program without modules of its own, for work of its passes."""
        sites = [site for site in self._sites if site.is_known]
        if len(sites) != 1 or self._timeline.phase[row] not in (Phase.FORWARD, Phase.BACKWARD):
            return None
        has_modules = any("Module" in self._files.facts(path).definitions for path in self._files.paths())
        return None if has_modules else sites[0]


def _is_library_name(name: str) -> bool:
    """Whether an event of this name tells of a library's model."""
    if not name.startswith("nn.Module: ") and "): " not in name:
        return False
    label = parse_label(name)
    return _is_model_code(label) or (label.kind is Kind.MODULE and _is_foreign_class(label.name))


def _is_foreign_class(name: str) -> bool:
    return name not in LAYERS and name not in _CONTAINERS


def _of_module(modules: Sequence[str]) -> _Part:
    words = f"the library's {modules[-1]}"
    return _Part("", "", modules[-1], f"{words}, in its {modules[0]}" if len(modules) > 1 else words)


def _is_model_code(label: Label) -> bool:
    """Whether a frame is code of a library's model: not torch's own, the interpreter's, or of what feeds a model."""
    head = label.package[0] if label.package else ""
    is_foreign = bool(head) and head != "torch" and head.partition(".")[0] not in sys.stdlib_module_names
    return is_foreign and len(label.package) > 1 and not _NO_MODEL_PARTS.search("/" + _cut(label.owner))


def _cut(owner: str) -> str:
    """A recorded library path from its package on."""
    return owner.replace("\\", "/").rpartition("site-packages/")[2]


def _may_build(site: Site, part: _Part) -> bool:
    if part.library and site.library and site.library != part.library:
        return False
    # An imported class may be anything: it must be the very class that ran.
    return site.is_known or part.class_name.lower() in site.names


def _likeness(part: _Part, site: Site) -> int:
    """2 for the very class, 1 for a name that begins like the class or its file, 0 for neither."""
    name = part.class_name.lower()
    if name in site.names:
        return 2
    asked = [re.sub(r"[^a-z0-9]", "", one) for one in site.names]
    stems = [one for one in (name, re.sub(r"[^a-z0-9]", "", part.stem)) if len(one) >= _SURE_STEM]
    return int(any(one.startswith(stem) for one in asked for stem in stems))
