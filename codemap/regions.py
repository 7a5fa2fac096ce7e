"""Placing events of a trace without Python frames of the workspace: by named ranges and by module calls.

A range or a module call says which code ran; its direct events are then aligned with that code, as a frame's are.
Where they fit too badly the range's own line is the place.
"""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np

from ..analyzer.findings import Grain, How
from ..analyzer.timeline.model import Timeline
from ..analyzer.timeline.module_names import tagged_path
from ..analyzer.trace.model import Category, IntArray
from .align import Alignment, Extent, Match
from .automaton import Action, Automaton
from .expressions import last_name
from .grammar import compile_code
from .knowledge import Knowledge
from .labels import Kind, Label, parse_label
from .recorded import RecordedFiles
from .source import Function
from .statements import Place, line_of, location_of
from .tags import Tag, find_tags

_TAG_CONFIDENCE = 0.9
_MODULE_CONFIDENCE = 0.8
_HEADER_CONFIDENCE = 0.6
"""That the event comes from somewhere inside the range whose first line is shown."""
_MOST_EVENTS = 1_500
_BY_NAME, _NAMED = 0.15, 0.4
"""A match that costs no more is by the very name, or by one that may be meant."""
_SURE = 0.7
"""Confidence of an alignment without Python events from which its line is shown instead of the range's."""


class Regions:
    """Locates by tag, then by module."""

    def __init__(self, timeline: Timeline, known: Knowledge, files: RecordedFiles) -> None:
        self._files = files
        self._timeline = timeline
        self._trace = timeline.trace
        self._known = known
        self._forwards: dict[str, tuple[str, Function] | None] = {}
        """By class name."""
        self._tags: tuple[Tag, ...] | None = None
        self._tag_of_name: dict[int, Tag | None] = {}
        recording = timeline.trace.recording
        self._class_of_path = {one.path: one.class_name for one in recording.modules} if recording else {}
        self._alignments: dict[int, tuple[IntArray, Alignment] | None] = {}
        self._inner: dict[tuple[int, ast.AST], Alignment] = {}
        """By first event, of what a function ran that the program itself called there."""
        self._bodies: dict[ast.AST, Automaton] = {}

    def locate(self, row: int) -> Place | None:
        """The place of `row` by the innermost named range, else by the innermost module of a class of the workspace."""
        region = self._innermost(row)
        if region is None:
            return None
        outer, what = region
        return self._in_tag(row, outer, what) if isinstance(what, Tag) else self._in_module(row, outer, *what)

    def allow(self, row: int, place: Place) -> bool:
        """Whether a place found otherwise lies in the innermost range or module of `row`, or in what that calls."""
        region = self._innermost(row)
        if region is None:
            return True
        path, qualname = (r.path, r.qualname) if isinstance(r := region[1], Tag) else (r[0], r[1].qualname)
        return any((one.path, one.qualname) == (path, qualname) for one in (place.location, *place.callers))

    def _innermost(self, row: int) -> tuple[int, Tag | tuple[str, Function]] | None:
        """The innermost event round `row` that names code of the workspace (a range, or a module's call), and that."""
        for outer in [row, *self._timeline.tree.ancestors(row)]:
            category = self._trace.cat[outer]
            if category == Category.USER_ANNOTATION and (tag := self._tag(outer)) is not None:
                return outer, tag
            if (name := self._module_class(outer)) and (method := self._forward(name)) is not None:
                return outer, method
        return None

    # Tags

    def _tag(self, row: int) -> Tag | None:
        name = int(self._trace.name[row])
        if name not in self._tag_of_name:
            if self._tags is None:
                self._tags = find_tags(self._known, self._files)
            text = self._trace.names[name]
            fitting = [tag for tag in self._tags if tag.pattern.fullmatch(text)]
            literal = [tag for tag in fitting if tag.is_literal]
            chosen = literal or fitting
            # The same name in two places says nothing.
            self._tag_of_name[name] = chosen[0] if len(chosen) == 1 else None
        return self._tag_of_name[name]

    def _in_tag(self, row: int, outer: int, tag: Tag) -> Place:
        body = ast.Module(tag.node.body, []) if isinstance(tag.node, (ast.With, ast.AsyncWith)) else tag.node
        return self._aligned(row, outer, tag.path, tag.node, body, tag.qualname, How.TAG, _TAG_CONFIDENCE)

    # Modules

    def _module_class(self, row: int) -> str:
        """The class of the module whose call `row` is, by its name or the recording run's; "" if it is none."""
        name = self._trace.name_of(row)
        if self._trace.cat[row] == Category.USER_ANNOTATION:
            return self._class_of_path.get(tagged_path(name), "")
        label = parse_label(name)
        return label.name if label.kind is Kind.MODULE else ""

    def _forward(self, class_name: str) -> tuple[str, Function] | None:
        """The file and `forward` method of a class that the workspace defines, once."""
        if class_name not in self._forwards:
            found = []
            for path in self._files.holding(class_name):
                if not self._files.facts(path).defines_class(class_name):
                    continue
                facts = self._known.index(path).classes.get(class_name)
                if facts is not None and (method := facts.methods.get("forward")) is not None:
                    found.append((path, method))
            self._forwards[class_name] = found[0] if len(found) == 1 else None
        return self._forwards[class_name]

    def _in_module(self, row: int, outer: int, path: str, method: Function) -> Place:
        node = method.node
        return self._aligned(row, outer, path, node, node, method.qualname, How.MODULE, _MODULE_CONFIDENCE)

    # Both

    def _aligned(
        self, row: int, outer: int, path: str, header: ast.AST, body: ast.AST, qualname: str, how: How, most: float
    ) -> Place:
        """The statement of `body` that ran `row`, or `header` where the events say too little."""
        file = self._known.file(path)
        if row != outer and (found := self._alignment(outer, path, header, body, qualname)) is not None:
            events, alignment = found
            starts = self._trace.ts_ns[events]
            position = max(int(np.searchsorted(starts, self._trace.ts_ns[row], side="right")) - 1, 0)
            match = alignment[position]
            if (action := _sure_action(match)) is not None:
                confidence = round(match.confidence * most, 3)
                label = parse_label(self._trace.name_of(int(events[position])))
                grain = Grain.LINE if self._runs_itself(path, action, label) else Grain.CALL
                location = location_of(file, action.statement, qualname, how, confidence, grain)
                note = "" if grain is Grain.LINE else "somewhere inside what is called here"
                place = Place(location, getattr(action.node, "lineno", location.line), (), note)
                return place if grain is Grain.LINE else self._followed(found, position, place) or place
        grain = Grain.BLOCK if isinstance(header, (ast.With, ast.AsyncWith)) else Grain.FUNCTION
        location = location_of(file, header, qualname, how, _HEADER_CONFIDENCE, grain)
        return Place(location, location.line, (), "somewhere inside")

    def _followed(self, found: tuple[IntArray, Alignment], position: int, call: Place) -> Place | None:
        """The place in the one function of the file that a statement calls, of an event that ran through it."""
        (events, alignment), path = found, call.location.path
        action = alignment[position].action
        index = self._known.index(path)
        nodes = ast.walk(action.statement) if action is not None else ()
        names = [last_name(node.func) for node in nodes if isinstance(node, ast.Call)]
        called = [function for name in names for function in index.functions.get(name, ())]
        if action is None or len(called) != 1:
            return None
        function, first, last = called[0], position, position + 1
        while first > 0 and _is_at(alignment[first - 1], action):
            first -= 1
        while last < len(events) and _is_at(alignment[last], action):
            last += 1
        labels = [parse_label(self._trace.name_of(int(event))) for event in events[first:last]]
        key = int(events[first]), function.node
        if key not in self._inner:
            self._inner[key] = Alignment(
                self._body(path, function.node, function.node, function.qualname), labels, Extent()
            )
        match = self._inner[key][position - first]
        inner = _sure_action(match)
        if inner is None or not self._runs_itself(path, inner, labels[position - first]):
            return None
        confidence = round(match.confidence * call.location.confidence, 3)
        file, how = self._known.file(path), call.location.how
        location = location_of(file, inner.statement, function.qualname, how, confidence)
        return Place(location, line_of(inner.node), (replace(call.location, grain=Grain.LINE),))

    def _runs_itself(self, path: str, action: Action, label: Label) -> bool:
        """Whether an action is expected to run an operator or module itself, not through a function of the program."""
        cost = action.cost(label)
        if cost <= _BY_NAME:
            return True
        index = self._known.index(path)
        calls = [node for node in ast.walk(action.statement) if isinstance(node, ast.Call)]
        if label.kind is Kind.MODULE:
            return not any(last_name(call.func) in index.functions for call in calls)
        if cost <= _NAMED or not isinstance(action.node, ast.Call):
            return True
        return index.dotted(action.node.func).startswith("torch.")

    def _alignment(
        self, outer: int, path: str, header: ast.AST, body: ast.AST, qualname: str
    ) -> tuple[IntArray, Alignment] | None:
        if outer not in self._alignments:
            events = self._events(outer)
            if not 0 < len(events) <= _MOST_EVENTS:
                self._alignments[outer] = None
            else:
                labels = [parse_label(self._trace.name_of(int(event))) for event in events]
                self._alignments[outer] = events, Alignment(self._body(path, header, body, qualname), labels, Extent())
        return self._alignments[outer]

    def _body(self, path: str, header: ast.AST, body: ast.AST, qualname: str) -> Automaton:
        """The automaton of what `header` opens, in the function of this name."""
        if header not in self._bodies:
            index = self._known.index(path)
            function = next((f for f in index.file.functions if f.qualname == qualname), None)
            owner = index.class_of(function) if function is not None else None
            self._bodies[header] = compile_code(body, index, owner)  # pyright: ignore[reportArgumentType]
        return self._bodies[header]

    def _events(self, outer: int) -> IntArray:
        """What happened directly inside: operators and module calls, whatever library frames lie between."""
        found: list[int] = []
        pending = [int(child) for child in reversed(self._timeline.tree.children(outer))]
        while pending:
            row = pending.pop()
            is_module = parse_label(self._trace.name_of(row)).kind is Kind.MODULE
            if self._trace.cat[row] == Category.CPU_OP or is_module:
                found.append(row)
            elif self._trace.cat[row] in (Category.USER_ANNOTATION, Category.PYTHON_FUNCTION):
                pending.extend(int(child) for child in reversed(self._timeline.tree.children(row)))
        return np.array(found, dtype=np.int64)


def _sure_action(match: Match) -> Action | None:
    """What of the source an event is matched with, if that is sure enough to show its line."""
    return match.action if match.explained and match.confidence >= _SURE else None


def _is_at(match: Match, action: Action) -> bool:
    return match.action is not None and match.action.statement is action.statement
