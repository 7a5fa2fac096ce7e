"""The models of a workspace, from source, from a recording run, from a trace, or from all that there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..analyzer.timeline.model import Timeline
from ..analyzer.trace.model import Dims
from .building.program import Files, Program
from .knowledge import Knowledge
from .locate import Locator
from .module_placed import PlacedOperators, with_placed_times
from .module_recording import Recorded, recorded_models
from .module_source import source_model, source_models
from .module_times import Called, ModuleTimes, find_called, model_of_calls, with_called_times, with_tagged_times
from .modules import Basis, Model, Module, Shape
from .recorded import RecordedFiles
from .unread import unread

_BY_RANGES = "the recording run's ranges"
_BY_CALLS = "the trace's module calls, matched to the model by class and order"
_BY_PLACES = "operators placed on the lines that call them"
_NO_CALLS = "the trace holds no module calls: record with with_stack=True, or by `torchtraceap record`"


@dataclass(frozen=True, slots=True)
class Found:
    """What a search for models gave."""

    models: tuple[Model, ...]
    """Those that ran first."""
    notes: tuple[str, ...]
    """What could not be read or followed."""


def models(known: Knowledge, timeline: Timeline | None = None, given: Dims | None = None) -> tuple[Model, ...]:
    """Every model, those that ran first. `given` is the size of the input, where neither source nor trace says it."""
    return find_models(known, timeline, given).models


def find_models(known: Knowledge, timeline: Timeline | None = None, given: Dims | None = None) -> Found:
    """The same, and what could not be read or followed: where no model was found, of all files of the workspace."""
    files = RecordedFiles(known.workspace, ())
    program = Program(known, files)
    if timeline is not None:
        found = _Traced(program, timeline, given, files).models()
    else:
        built = source_models(program, given)
        notes = _notes(program, files)
        found = tuple(Model(one.root, notes=(*_cut(one.root), *notes)) for one in built)
    return Found(found, _notes(program, files if found else known.workspace))


def _cut(root: Module) -> tuple[str, ...]:
    """Where in the tree following the source ended early."""
    ends = [
        f"{module.path or root.class_name}: {module.note}" for module in root.walk() if module.has_more and module.note
    ]
    more = f" (and {len(ends) - 1} more such)" if len(ends) > 1 else ""
    return (f"the model is not followed to its end: {ends[0]}{more}",) if ends else ()


def _notes(program: Program, files: Files) -> tuple[str, ...]:
    cut = "some of the source took too long, or is nested too deep, to be followed to its end"
    return (*((cut,) if program.is_cut else ()), *unread(program.known, files.paths()))


class _Traced:
    """The models of a workspace beside those that ran in a trace."""

    def __init__(self, program: Program, timeline: Timeline, given: Dims | None, files: Files) -> None:
        self._program = program
        self._timeline = timeline
        self._given = given
        self._step_us = timeline.step_us
        self._recording = timeline.trace.recording
        self._times = ModuleTimes(timeline)
        self._built = source_models(program, given)
        self._static = tuple(one.root for one in self._built)
        self._notes = _notes(program, files)

    def models(self) -> tuple[Model, ...]:
        recording = self._recording
        if recording is not None:
            recorded = recorded_models(recording, self._program.known, self._static)
            self._notes += recorded.notes
            if recorded.roots:
                return self._recorded(recorded)
        called = self._times.calls()
        if not called:
            return self._placed()
        ran = [self._called(at, found) for at, found in self._likeliest(called)]
        classes = {one.root.class_name for one in ran}
        rest = [one for one in called if one.children and one.class_name not in classes and not _holds(one, classes)]
        alone = (model_of_calls(one, self._step_us) for one in rest)
        return (*ran, *(Model(root, "the trace's module calls", self._step_us, self._notes) for root in alone))

    def _placed(self) -> tuple[Model, ...]:
        """Times by the operators' places, for the models that look like what ran; these come first."""
        operators = PlacedOperators(self._timeline, Locator(self._timeline, self._program.known.workspace))
        ran: list[Model] = []
        rest: list[Model] = []
        for built, value in zip(self._built, self._program.roots(), strict=True):
            root = built.root
            found = operators.times(root, built.calls)
            if found is None:
                rest.append(Model(root, step_us=self._step_us, notes=(*self._notes, _NO_CALLS)))
                continue
            if (first := _whole(found.first_input)) is not None and self._given is None and not has_sizes(root):
                root = source_model(self._program, value, first).root
            timed = with_placed_times(root, found.us_per_step, self._step_us)
            basis = f"{_BY_PLACES} ({found.found_pct:.0f} % of the layers' calls were found)"
            ran.append(Model(timed, basis, self._step_us, self._notes))
        return (*ran, *rest)

    def _recorded(self, recorded: Recorded) -> tuple[Model, ...]:
        merged = [merge(root, self._static) for root in recorded.roots]
        if tagged := self._times.by_path():
            pairs = zip(merged, recorded.tops, strict=True)
            timed = [with_tagged_times(root, tagged, top, self._step_us) for root, top in pairs]
            return tuple(Model(root, _BY_RANGES, self._step_us, self._notes) for root in timed)
        called = self._times.calls()
        found = [(root, find_called(root, called)) for root in merged]
        return tuple(
            Model(root, "", self._step_us, self._notes)
            if one is None
            else Model(with_called_times(root, one, self._step_us), _BY_CALLS, self._step_us, self._notes)
            for root, one in found
        )

    def _likeliest(self, called: tuple[Called, ...]) -> list[tuple[int, Called]]:
        """Which model of the source each call is: of several of its class the one most like what ran."""
        best: dict[str, tuple[float, tuple[int, Called]]] = {}
        for at, root in enumerate(self._static):
            found = find_called(root, called)
            if found is None:
                continue
            modules = list(with_called_times(root, found, 0.0).walk())
            share = sum(one.us_per_step is not None for one in modules) / len(modules)
            if found.name not in best or share > best[found.name][0]:
                best[found.name] = (share, (at, found))
        return [pair for _, pair in best.values()]

    def _called(self, at: int, called: Called) -> Model:
        """A model of the source with the times of its call; its sizes follow from what the trace says went in."""
        root = self._static[at]
        if self._given is None and not has_sizes(root):
            first = _first_input(with_called_times(root, called, 0.0))
            if first is not None:
                root = source_model(self._program, self._program.roots()[at], first).root
        return Model(with_called_times(root, called, self._step_us), _BY_CALLS, self._step_us, self._notes)


def has_sizes(root: Module) -> bool:
    """Whether a model's sizes are known, by what comes out of it; a single figure, such as a loss, tells none."""
    return any(shape and None not in shape for shape in root.outputs)


def _first_input(timed: Module) -> Dims | None:
    """What the innermost module that is called first was given: most likely what went into the model."""
    inner = [one for one in timed.walk() if not one.children and one.call_order is not None and one.inputs]
    first = min(inner, key=lambda module: module.call_order or 0, default=None)
    return _whole(first.inputs[0]) if first is not None else None


def _whole(shape: Shape) -> Dims | None:
    """A shape of which every size is known."""
    sizes = tuple(size for size in shape or () if size is not None)
    return sizes if shape and len(sizes) == len(shape) else None


def _holds(called: Called, classes: set[str]) -> bool:
    return any(child.class_name in classes or _holds(child, classes) for child in called.children)


def merge(recorded: Module, static: Sequence[Module]) -> Module:
    """A recorded model with the source's places: of several of its class the one with most paths in common."""
    paths = {(module.path, module.class_name) for module in recorded.walk()}
    fitting = [root for root in static if root.class_name == recorded.class_name]
    if not fitting:
        return recorded
    source = max(fitting, key=lambda root: sum((one.path, one.class_name) in paths for one in root.walk()))
    return _merged(recorded, {module.path: module for module in source.walk()})


def _merged(recorded: Module, source: dict[str, Module]) -> Module:
    children = tuple(_merged(child, source) for child in recorded.children)
    known = source.get(recorded.path)
    if known is None or known.class_name != recorded.class_name:
        return replace(recorded, children=children)
    shared = {tensor.name for tensor in known.tensors if tensor.is_shared}
    return replace(
        recorded,
        basis=Basis.BOTH,
        origin=known.origin,
        defined_at=known.defined_at or recorded.defined_at,
        built_at=known.built_at or recorded.built_at,
        arguments={**known.arguments, **recorded.arguments},
        tensors=tuple(replace(one, is_shared=one.name in shared) for one in recorded.tensors),
        feeds=recorded.feeds or known.feeds,
        call_order=known.call_order,
        children=children,
    )
