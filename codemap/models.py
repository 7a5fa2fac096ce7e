"""The models of a workspace, from source, from a recording run, from a trace, or from all that there is."""

from __future__ import annotations

from dataclasses import replace

from ..analyzer.timeline.model import Timeline
from .building.program import Program
from .knowledge import Knowledge
from .module_recording import recorded_models
from .module_source import source_models
from .module_times import Called, ModuleTimes, find_called, model_of_calls, with_called_times, with_tagged_times
from .modules import Basis, Model, Module
from .recorded import RecordedFiles

_RAN_FROM_SOURCE = "the module calls of the trace, matched to the source by class and order"


def models(
    known: Knowledge, timeline: Timeline | None = None, given: tuple[int, ...] | None = None
) -> tuple[Model, ...]:
    """Every model, those that ran first. `given` is the size of the input, where the source does not say it."""
    files = RecordedFiles(known.workspace, ())
    program = Program(known, files)
    static = source_models(program, given)
    notes = ("some files took too long to be followed to their end",) if program.is_cut else ()
    if timeline is None:
        return tuple(Model(root, notes=notes) for root in static)
    return _with_trace(static, known, timeline, notes)


def _with_trace(
    static: tuple[Module, ...], known: Knowledge, timeline: Timeline, notes: tuple[str, ...]
) -> tuple[Model, ...]:
    times = ModuleTimes(timeline)
    recording = timeline.trace.recording
    recorded = recorded_models(recording, known) if recording is not None else ()
    if recorded and recording is not None:
        tagged = times.by_path()
        tops = [module.path for module in recording.modules if _is_top(module.path, recorded, recording.modules)]
        merged = [merge(root, static) for root in recorded]
        if tagged:
            timed = [
                with_tagged_times(one, tagged, top, timeline.step_us) for one, top in zip(merged, tops, strict=True)
            ]
            return tuple(Model(one, "the recording run's ranges", timeline.step_us, notes) for one in timed)
        return tuple(_by_calls(one, times.calls(), timeline.step_us, notes) for one in merged)
    called = times.calls()
    if not called:
        missing = (
            *notes,
            "the trace holds no module calls: record it with with_stack=True, or by `torchtraceap record`",
        )
        return tuple(Model(root, step_us=timeline.step_us, notes=missing) for root in static)
    matched = [(root, found) for root in static if (found := find_called(root, called)) is not None]
    ran = [_by_calls(root, called, timeline.step_us, notes) for root, _ in _likeliest(matched)]
    known_classes = {one.root.class_name for one in ran}
    rest = [
        Model(model_of_calls(one, timeline.step_us), "the module calls of the trace", timeline.step_us, notes)
        for one in called
        if one.class_name not in known_classes and one.children and not _holds(one, known_classes)
    ]
    return (*ran, *rest)


def _is_top(path: str, roots: tuple[Module, ...], modules: tuple[object, ...]) -> bool:
    """Whether a recorded path is that of a model, not of a part."""
    paths = {getattr(module, "path", "") for module in modules}
    above = path
    while above:
        above = above.rpartition(".")[0]
        if above in paths:
            return False
    return len(roots) > 0


def _holds(called: Called, classes: set[str]) -> bool:
    return any(child.class_name in classes or _holds(child, classes) for child in called.children)


def _likeliest(matched: list[tuple[Module, Called]]) -> list[tuple[Module, Called]]:
    """Of several models that one call may be, the one whose modules are most like those that ran."""
    best: dict[str, tuple[float, tuple[Module, Called]]] = {}
    for root, called in matched:
        timed = with_called_times(root, called, 0.0)
        modules = list(timed.walk())
        share = sum(one.us_per_step is not None for one in modules) / len(modules)
        if called.name not in best or share > best[called.name][0]:
            best[called.name] = (share, (root, called))
    return [pair for _, pair in best.values()]


def _by_calls(root: Module, called: tuple[Called, ...], step_us: float, notes: tuple[str, ...]) -> Model:
    found = find_called(root, called)
    if found is None:
        return Model(root, step_us=step_us, notes=notes)
    return Model(with_called_times(root, found, step_us), _RAN_FROM_SOURCE, step_us, notes)


def merge(recorded: Module, static: tuple[Module, ...]) -> Module:
    """A recorded model with the source's places: of several of its class the one with most paths in common."""
    paths = {(module.path, module.class_name) for module in recorded.walk()}
    fitting = [
        (sum((module.path, module.class_name) in paths for module in root.walk()), at)
        for at, root in enumerate(static)
        if root.class_name == recorded.class_name
    ]
    if not fitting:
        return recorded
    source = static[max(fitting, key=lambda pair: (pair[0], -pair[1]))[1]]
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
