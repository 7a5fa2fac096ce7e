"""From an event of the trace to the statement that ran it.

By `python_function` frames where the trace has them: the innermost frame whose file is in the workspace, its
children aligned with its body. Else by the `Call stack` argument, whose lines are those being executed; else by
`record_function` tags and module names (`tags.py`, `modules.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..analyzer.findings import How
from ..analyzer.timeline.model import Timeline
from ..analyzer.trace.model import NONE, IntArray
from .align import Alignment, Extent, Match
from .codes import Found
from .frames import Frames
from .knowledge import Knowledge
from .labels import Kind, Label, parse_label
from .paths import Matched, match_paths
from .recorded import RecordedFiles
from .regions import Regions
from .statements import Place, location_of, statement_at
from .workspace import Workspace

LEAST_CONFIDENCE = 0.3
"""Below it no line is named."""
_WINDOW = 1_200
_MARGIN = 150
"""A frame with more children is aligned window by window, each with a margin on both sides."""


@dataclass(slots=True)
class _Running:
    """A frame whose code is in the workspace, with what was found of it so far."""

    frame: int
    label: Label
    matched: Matched
    found: Found
    children: IntArray
    starts_ns: IntArray
    alignments: dict[int, Alignment] = field(default_factory=dict)
    """By window."""
    places: dict[int, Place | None] = field(default_factory=dict)
    """By position among `children`."""


class Locator:
    """Locates events of one trace in one workspace."""

    def __init__(self, timeline: Timeline, workspace: Workspace) -> None:
        self._timeline = timeline
        self._trace = timeline.trace
        self._frames = Frames(timeline.trace, timeline.tree)
        self._known = Knowledge(workspace)
        self._stacks = {} if self._frames.has_any else _parsed_stacks(timeline.trace.stacks)
        frames = self._recorded_frames()
        self._paths = match_paths(frames, workspace, self._known.codes)
        paths = frozenset(matched.path for matched in self._paths.values())
        self._recorded = RecordedFiles(workspace, paths) if paths or not frames else None
        self._regions = Regions(timeline, self._known, self._recorded) if self._recorded is not None else None
        self._running: dict[int, _Running | None] = {}
        self._alignments: dict[tuple[ast.AST, Extent, tuple[int, ...]], Alignment] = {}

    @property
    def known(self) -> Knowledge:
        """What was learnt of the workspace's files on the way."""
        return self._known

    @property
    def recorded_files(self) -> RecordedFiles | None:
        """The files that the recording may have run; None where its stacks name files, and none of the workspace."""
        return self._recorded

    def locate(self, row: int) -> Place | None:
        """The place of event `row`; a backward event is placed at its forward operator. None if there is none."""
        forward = int(self._timeline.forward_op[row])
        anchor = row if forward == NONE else forward
        place = self._by_frames(anchor) if self._frames.has_any else self._by_call_stack(anchor)
        return place or (self._regions.locate(anchor) if self._regions is not None else None)

    def workspace_path(self, label: Label) -> Matched | None:
        """The workspace file that a frame's label names, if any."""
        return self._paths.get(label.owner)

    def class_place(self, name: str) -> tuple[str, int, str] | None:
        """Path, line and name of the class `name` in a file of the recording; None if none or several have it."""
        paths = {matched.path for matched in self._paths.values()}
        found = [(path, facts) for path in paths if (facts := self._known.index(path).classes.get(name)) is not None]
        if len(found) != 1:
            return None
        path, facts = found[0]
        return path, facts.node.lineno, facts.name

    # Frames

    def _by_frames(self, row: int) -> Place | None:
        places = [place for frame in self._frames.chain(row) if (place := self._in_frame(row, frame)) is not None]
        return _with_callers(places)

    def _in_frame(self, row: int, frame: int) -> Place | None:
        """The statement of `frame` that ran `row`, itself or through what it called; None outside the workspace."""
        if frame not in self._running:
            self._running[frame] = self._enter(frame)
        running = self._running[frame]
        if running is None or not len(running.children):
            return None
        # An event that starts inside a child (a range opened by `__enter__`) belongs to that child.
        starts = running.starts_ns
        position = max(int(np.searchsorted(starts, self._trace.ts_ns[row], side="right")) - 1, 0)
        if position not in running.places:
            running.places[position] = self._statement(running, position)
        return running.places[position]

    def _enter(self, frame: int) -> _Running | None:
        label = parse_label(self._trace.name_of(frame))
        matched = self._paths.get(label.owner)
        found = matched and self._known.codes(matched.path).find(label.name, label.line)
        if matched is None or found is None:
            return None
        children = self._frames.children(frame)
        return _Running(frame, label, matched, found, children, self._trace.ts_ns[children])

    def _statement(self, running: _Running, position: int) -> Place | None:
        """The statement behind child number `position` of a frame."""
        window = position // _WINDOW
        if window not in running.alignments:
            running.alignments[window] = self._align(running, window)
        match = running.alignments[window][position - _first(window)]
        matched, found = running.matched, running.found
        confidence = match.confidence * matched.confidence * (1.0 if found.is_current else 0.7)
        if match.action is None or confidence < LEAST_CONFIDENCE:
            return None
        file = self._known.file(matched.path)
        location = location_of(file, match.action.statement, found.code.qualname, How.STACK, round(confidence, 3))
        return Place(location, _line(match.action.node), (), _note(match, matched, found))

    def _align(self, running: _Running, window: int) -> Alignment:
        """The matches of a window of children and its margins; equal frames are aligned once."""
        found, count = running.found, len(running.children)
        first, last = _first(window), min((window + 1) * _WINDOW + _MARGIN, count)
        extent = Extent(
            from_entry=first == 0 and not found.was_running,
            to_exit=last == count and not self._frames.is_open(running.frame),
            start_line=running.label.line if found.was_running and first == 0 else 0,
        )
        names = tuple(self._trace.name[running.children[first:last]].tolist())
        key = (found.code.node, extent, names)
        if key not in self._alignments:
            automaton = self._known.automaton(running.matched.path, found.code)
            labels = [parse_label(self._trace.names[name]) for name in names]
            self._alignments[key] = Alignment(automaton, labels, extent)
        return self._alignments[key]

    def _recorded_frames(self) -> list[Label]:
        if not self._frames.has_any:
            return [label for stack in self._stacks.values() for label in stack]
        labels = (parse_label(name) for name in self._trace.names if "): " in name)
        return [label for label in labels if label.kind is Kind.FRAME]

    # Call stacks

    def _by_call_stack(self, row: int) -> Place | None:
        places = []
        for label in self._stacks.get(int(self._trace.stack[row]), ()):
            matched = self._paths.get(label.owner)
            if matched is None:
                continue
            file = self._known.file(matched.path)
            function, statement = file.function_at(label.line), statement_at(file, label.line)
            # The recorded function must hold the line still, else the file was edited too much to tell.
            if statement is not None and function is not None and function.name in (label.name, "<lambda>"):
                location = location_of(file, statement, function.qualname, How.STACK, matched.confidence)
                places.append(Place(location, label.line, (), _note(None, matched, None)))
        return _with_callers(places)


def _first(window: int) -> int:
    """Position of the first child of a window, its margin counted in."""
    return max(window * _WINDOW - _MARGIN, 0)


def _parsed_stacks(stacks: tuple[str, ...]) -> Mapping[int, list[Label]]:
    """The frames of each interned `Call stack`, innermost first."""
    parsed = {}
    for number, stack in enumerate(stacks):
        labels = (parse_label(part) for part in stack.split(";") if "): " in part)
        parsed[number] = [label for label in labels if label.kind is Kind.FRAME]
    return parsed


def _with_callers(places: list[Place]) -> Place | None:
    """The innermost place, the others as its callers."""
    if not places:
        return None
    first, *above = places
    return Place(first.location, first.line, tuple(place.location for place in above), first.note)


def _note(match: Match | None, matched: Matched, found: Found | None) -> str:
    notes = []
    if match is not None and match.other is not None and match.confidence < 0.75:
        notes.append(f"line {_line(match.other.node)} fits nearly as well")
    if matched.others:
        notes.append(f"so does {matched.others[0]}" if notes else f"{matched.others[0]} fits as well")
    if found is not None and not found.is_current:
        notes.append("the file was edited since the recording")
    return "; ".join(notes)


def _line(node: ast.AST) -> int:
    """The line on which a call or operator itself stands: of a chained method, the line of its own name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.end_lineno or node.lineno
    return node.lineno  # pyright: ignore[reportAttributeAccessIssue]
