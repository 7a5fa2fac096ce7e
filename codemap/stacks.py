"""Placing by what was on the stack: Python frames, or the `Call stack` argument of operators.

Where the recording run wrote the executed lines they are used. Else the children of a frame are aligned with its body;
those of them whose line is known hold the others in place.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..analyzer.findings import How
from ..analyzer.timeline.model import CallTree
from ..analyzer.trace.model import NONE, Category, IntArray, Trace
from .align import Alignment, Extent, Match
from .codes import Code, Found
from .exact import Exact
from .frames import Frames
from .knowledge import Knowledge
from .labels import Kind, Label, parse_label
from .matched import Matched
from .paths import match_paths
from .statements import Place, line_of, location_of, qualname_at, statement_at

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


class Stacks:
    """Locates events by their stacks, in one trace and one workspace."""

    def __init__(self, trace: Trace, tree: CallTree, known: Knowledge, exact: Exact) -> None:
        self._trace = trace
        self._tree = tree
        self._known = known
        self._exact = exact
        self.frames = Frames(trace, tree)
        self._stacks = {} if self.frames.has_any else _parsed_stacks(trace.stacks)
        frames = self._recorded_frames()
        self.names_files = bool(frames)
        """Whether the trace says which files ran at all."""
        self.paths = dict(match_paths(frames, known.workspace, known.codes))
        """Workspace file by recorded path."""
        self.paths |= exact.matched({label.owner for label in frames})
        self._running: dict[int, _Running | None] = {}
        self._alignments: dict[tuple[ast.AST, Extent, tuple[int, ...], tuple[int, ...]], Alignment] = {}

    def locate(self, row: int) -> Place | None:
        """The place of `row`: the innermost statement of the workspace that was running, the others as its callers."""
        if self.frames.has_any:
            frames = self.frames.chain(row)
            places = [place for frame in frames if (place := self._in_frame(row, frame)) is not None]
        else:
            places = self._in_call_stack(row)
        return _with_callers(places) or self._by_recorded_line(row)

    def is_within_operator(self, row: int) -> bool:
        """Whether an operator called the code of the workspace that ran `row`: a hand-written `backward`, a block that
        the backward pass computes again."""
        frames = self.frames.chain(row) if self.frames.has_any else []
        own = next((frame for frame in frames if parse_label(self._trace.name_of(frame)).owner in self.paths), NONE)
        return own != NONE and int(self._tree.op[own]) != NONE

    # Recorded lines

    def _by_recorded_line(self, row: int) -> Place | None:
        """Of an operator that no frame is known of: the line that the recording run noted for it."""
        while self._exact.has_any and row != NONE and self._trace.cat[row] == Category.CPU_OP:
            spot = self._exact.line_of(row)
            if spot is not None and (statement := statement_at(self._known.file(spot.path), spot.line)) is not None:
                file = self._known.file(spot.path)
                return Place(location_of(file, statement, qualname_at(file, spot.line)), spot.line)
            row = int(self._tree.parent[row])
        return None

    def _known_line(self, running: _Running, child: int) -> int:
        """The line on which the frame was when `child` began; 0 if it was not recorded, or cannot be true."""
        spot = self._exact.line_under(child) if self._exact.has_any else None
        if spot is None or spot.path != running.matched.path or not running.found.is_current:
            return 0
        code = running.found.code
        is_inside = code.name == "<module>" or code.first_line <= spot.line <= code.end_line
        return spot.line if is_inside and self._own_statement(running.matched.path, code, spot.line) else 0

    def _own_statement(self, path: str, code: Code, line: int) -> ast.AST | None:
        """What is shown for a line of some code: a statement of it; a lambda or comprehension as a whole."""
        if isinstance(code.node, ast.expr):
            return code.node
        statement = statement_at(self._known.file(path), line)
        return None if statement is code.node else statement

    # Frames

    def _in_frame(self, row: int, frame: int) -> Place | None:
        """The statement of `frame` that ran `row`, itself or through what it called; None outside the workspace."""
        if frame not in self._running:
            self._running[frame] = self._enter(frame)
        running = self._running[frame]
        if running is None or not len(running.children):
            return None
        # An event that starts inside a child (a range opened by `__enter__`) belongs to that child.
        starts = running.starts_ns
        position = max(int(starts.searchsorted(self._trace.ts_ns[row], side="right")) - 1, 0)
        if position not in running.places:
            running.places[position] = self._statement(running, position)
        return running.places[position]

    def _enter(self, frame: int) -> _Running | None:
        label = parse_label(self._trace.name_of(frame))
        matched = self.paths.get(label.owner)
        label = matched.here(label) if matched is not None else label
        found = matched and self._known.codes(matched.path).find(label.name, label.line)
        if matched is None or found is None:
            return None
        children = self.frames.children(frame)
        return _Running(frame, label, matched, found, children, self._trace.ts_ns[children])

    def _statement(self, running: _Running, position: int) -> Place | None:
        """The statement behind child number `position` of a frame."""
        matched, found = running.matched, running.found
        file = self._known.file(matched.path)
        if line := self._known_line(running, int(running.children[position])):
            statement = self._own_statement(matched.path, found.code, line)
            assert statement is not None
            return Place(location_of(file, statement, found.code.qualname), line)
        window = position // _WINDOW
        if window not in running.alignments:
            running.alignments[window] = self._align(running, window)
        match = running.alignments[window][position - _first(window)]
        confidence = match.confidence * matched.confidence * (1.0 if found.is_current else 0.7)
        if match.action is None or confidence < LEAST_CONFIDENCE:
            return None
        location = location_of(file, match.action.statement, found.code.qualname, How.STACK, round(confidence, 3))
        return Place(location, line_of(match.action.node), (), _note(match, matched, found))

    def _align(self, running: _Running, window: int) -> Alignment:
        """The matches of a window of children and its margins; equal frames are aligned once."""
        found, count = running.found, len(running.children)
        is_whole = not (running.matched.is_cell and found.code.name == "<module>")
        first, last = _first(window), min((window + 1) * _WINDOW + _MARGIN, count)
        extent = Extent(
            from_entry=first == 0 and not found.was_running and is_whole,
            to_exit=last == count and not self.frames.is_open(running.frame) and is_whole,
            start_line=running.label.line if found.was_running and first == 0 else 0,
        )
        children = running.children[first:last]
        names = tuple(self._trace.name[children].tolist())
        lines = tuple(self._known_line(running, int(child)) for child in children) if self._exact.has_any else ()
        key = (found.code.node, extent, names, lines)
        if key not in self._alignments:
            automaton = self._known.automaton(running.matched.path, found.code)
            labels = [parse_label(self._trace.names[name]) for name in names]
            self._alignments[key] = Alignment(automaton, labels, extent, lines)
        return self._alignments[key]

    def _recorded_frames(self) -> list[Label]:
        if not self.frames.has_any:
            return [label for stack in self._stacks.values() for label in stack]
        labels = (parse_label(name) for name in self._trace.names if "): " in name)
        return [label for label in labels if label.kind is Kind.FRAME]

    # Call stacks

    def _in_call_stack(self, row: int) -> list[Place]:
        places = []
        for label in self._stacks.get(int(self._trace.stack[row]), ()):
            matched = self.paths.get(label.owner)
            if matched is None:
                continue
            file, label = self._known.file(matched.path), matched.here(label)
            function, statement = file.function_at(label.line), statement_at(file, label.line)
            # The recorded function must hold the line still, else the file was edited too much to tell.
            if statement is not None and function is not None and function.name in (label.name, "<lambda>"):
                location = location_of(file, statement, function.qualname, How.STACK, matched.confidence)
                places.append(Place(location, label.line, (), _note(None, matched, None)))
        return places


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
        notes.append(f"line {line_of(match.other.node)} fits nearly as well")
    if matched.others:
        notes.append(f"so does {matched.others[0]}" if notes else f"{matched.others[0]} fits as well")
    if found is not None and not found.is_current:
        notes.append("the file was edited since the recording")
    return "; ".join(notes)
