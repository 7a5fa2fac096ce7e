"""Places the events of a trace without Python events: each step's sequence against what the workspace's programs do."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ...analyzer.findings import Grain, How, Location
from ...analyzer.timeline.model import Phase, Timeline
from ...analyzer.trace.model import DEVICE_CATEGORIES, NONE, OpInputs
from ..expressions import last_name
from ..knowledge import Knowledge
from ..recorded import RecordedFiles
from ..statements import Place, line_of, location_of
from .beam import Aligned, Aligner, Label, Match
from .candidates import programs
from .events import BACKWARD, RANGE, Segment, segments
from .program import Expected, Site
from .within import Within

_LEAST_LINE = 0.6
"""Below this confidence no line is named."""
_LEAST_FUNCTION = 0.6
_MOST_CALL = 0.6
"""Confidence in a call of code that could not be followed."""
_MOST_FUNCTION = 0.75
"""Where not even the line is sure, so often the function is right."""
_MOST_COST = 0.35
"""Surprises for each event above which only what fits for long is placed: most likely it is another program."""
_LEAST_FITTING = 0.9
"""The same above which nothing is."""
_GOOD_COST = 0.2
"""Surprises for each event below which no other program is tried."""
_MOST_EVENTS, _MOST_TRIED = 20_000, 4_000
"""Events that are aligned in all (some 0.3 ms each; what lies beyond has no places), and with each program tried."""
_MOST_CALLERS = 8


@dataclass(frozen=True, slots=True)
class _Found:
    """One segment with its places."""

    segment: Segment
    aligned: Aligned
    is_firm: Sequence[bool]
    """For each event, whether its place is to be trusted at all."""


class SequencePlacer:
    """Locates events by the order and the shapes of the operators around them."""

    def __init__(self, timeline: Timeline, known: Knowledge, files: RecordedFiles) -> None:
        self._timeline = timeline
        self._trace = timeline.trace
        self._known = known
        self._files = files
        self._at: dict[int, tuple[_Found, int]] | None = None
        """Row of each event -> its segment, and its number there."""
        self._places: dict[int, Place | None] = {}
        """By the event's row."""
        self._backwards: list[int] = []
        """Rows of the backward passes, in time order."""

    def locate(self, row: int) -> Place | None:
        """The place of `row` (its forward operator's for a backward one); None where even the function is unsure."""
        if self._at is None:
            self._at = self._align()
            self._backwards = sorted(
                row for row, (found, at) in self._at.items() if found.segment.names[at] == BACKWARD
            )
        event = self._event_of(row)
        if event is None:
            return None
        if event not in self._places:
            self._places[event] = self._place(*self._at[event])
        return self._places[event]

    # From a row to its event

    def _event_of(self, row: int) -> int | None:
        """The event that `row` is part of."""
        at, timeline = self._at or {}, self._timeline
        if self._trace.cat[row] in DEVICE_CATEGORIES:
            row = int(timeline.launches.op[row])
            if row == NONE:
                return None
        forward = int(timeline.forward_op[row])
        row = row if forward == NONE else forward
        around = next((each for each in (row, *timeline.tree.ancestors(row)) if each in at), None)
        if around is None and timeline.phase[row] == Phase.BACKWARD:
            before = bisect_right(self._backwards, row)
            return self._backwards[before - 1] if before else None
        return around

    # Alignment

    def _align(self) -> dict[int, tuple[_Found, int]]:
        """The places of all events, by row."""
        parts = segments(self._timeline)
        chosen = self._choose(parts)
        if chosen is None:
            return {}
        aligner, fits = chosen
        known: dict[object, Aligned] = {}
        found: dict[int, tuple[_Found, int]] = {}
        left = _MOST_EVENTS
        for part in sorted(parts, key=len, reverse=True):
            if part.key not in known:
                if len(part) > left:
                    continue
                left -= len(part)
                known[part.key] = aligner.align(self._labels(part))
            aligned = known[part.key]
            one = _Found(part, aligned, [True] * len(part) if fits else aligned.firm())
            found.update((row, (one, at)) for at, row in enumerate(part.rows.tolist()))
            found.update((row, (one, at)) for row, at in part.further.T.tolist())
        return found

    def _choose(self, parts: Sequence[Segment]) -> tuple[Aligner, bool] | None:
        """The program that fits a typical step best, and whether it does as a whole; None if it does nowhere."""
        steady = set(self._timeline.steps.steady.tolist())
        parts = [part for part in parts if self._timeline.phase[part.rows[0]] != Phase.BACKWARD]
        inside = [part for part in parts if int(self._timeline.steps.of[part.rows[0]]) in steady] or parts
        if not inside:
            return None
        typical = sorted(inside, key=len)[len(inside) // 2]
        labels = self._labels(typical)[:_MOST_TRIED]
        best: tuple[Aligner, Aligned] | None = None
        for program in programs(self._known, self._files, self._words(parts)):
            aligner = Aligner(program)
            aligned = aligner.align(labels)
            if best is None or aligned.score < best[1].score:
                best = aligner, aligned
            if aligned.score < _GOOD_COST:
                break
        if best is None:
            return None
        aligner, aligned = best
        fits = aligned.score <= _MOST_COST
        return (aligner, fits) if fits or (aligned.score <= _LEAST_FITTING and any(aligned.firm())) else None

    def _words(self, parts: Sequence[Segment]) -> frozenset[str]:
        """What the program's text is likely to hold: names of operators, ranges and classes of modules."""
        names = {name.removeprefix(RANGE) for part in parts for name in part.names}
        return frozenset(names | {name for part in parts for one in part.within for name in one.modules or ()})

    def _labels(self, part: Segment) -> list[Label]:
        table = self._trace.input_table
        return [
            Label(name, table[int(inputs)] if inputs != NONE else OpInputs(), within)
            for name, inputs, within in zip(part.names, part.inputs, part.within, strict=True)
        ]

    # Places

    def _place(self, found: _Found, at: int) -> Place | None:
        match = found.aligned.matches[at]
        if not found.is_firm[at]:
            return None
        if match.is_explained and match.expected is not None:
            if _is_swallowed(match.expected, found.segment.names[at]):
                return None
            leads_on = self._leads_on(match.expected, found.segment.names[at])
            how = _how(match, found.segment.within[at])
            return self._stated(how, match.expected.site, match.confidence, match.function_confidence, leads_on)
        before, after = _neighbour(found, at, -1), _neighbour(found, at, 1)
        if before is None or after is None or before.expected is None or after.expected is None:
            return None
        one, other, how = before.expected.site, after.expected.site, _how(before, found.segment.within[at])
        sureness = min(before.confidence, after.confidence) * 0.8
        function = min(before.function_confidence, after.function_confidence) * 0.8
        if one.statement is other.statement and not _is_swallowed(before.expected, found.segment.names[at]):
            leads_on = self._leads_on(before.expected, found.segment.names[at])
            return self._stated(how, one, sureness, function, leads_on)
        return self._stated(how, one, 0.0, function, False) if one.function is other.function else None

    def _leads_on(self, expected: Expected, name: str) -> bool:
        """Whether an event at a call of the program's own code belongs to the code that is called, which could not be
        followed there."""
        node = expected.site.node
        if name in expected.names or not isinstance(node, ast.Call):
            return False
        called = last_name(node.func)
        return any(self._files.facts(path).defines(called) for path in self._files.holding(called))

    def _stated(self, how: How, site: Site, confidence: float, function: float, leads_on: bool) -> Place | None:
        """A place at the site's statement, or where that is unsure at its function's header; None for a library's model
        that was tried by itself, with no statement of the program around it."""
        if not site.path:
            return None
        file = self._known.file(site.path)
        callers = self._callers(site)
        if confidence >= _LEAST_LINE:
            grain = Grain.CALL if leads_on else Grain.LINE
            sureness = round(min(confidence, _MOST_CALL) if leads_on else confidence, 3)
            location = location_of(file, site.statement, site.qualname, how, sureness, grain)
            note = "" if grain is Grain.LINE else "somewhere inside what is called here"
            return Place(location, line_of(site.node), callers, note)
        if function < _LEAST_FUNCTION or site.function is None:
            return None
        sureness = round(min(function, _MOST_FUNCTION), 3)
        location = location_of(file, site.function, site.qualname, how, sureness, Grain.FUNCTION)
        return Place(location, location.line, callers, "somewhere inside")

    def _callers(self, site: Site) -> tuple[Location, ...]:
        found: list[Location] = []
        caller = site.caller
        # Where a function is tried by itself, nothing of the program calls it.
        while caller is not None and caller.path and len(found) < _MOST_CALLERS:
            found.append(location_of(self._known.file(caller.path), caller.statement, caller.qualname, How.ORDER))
            caller = caller.caller
        return tuple(found)


def _how(match: Match, within: Within) -> How:
    """What a match rests on first: the range or the module that the event ran in, sizes, or order alone."""
    if within.modules:
        return How.MODULE
    if within.ranges:
        return How.TAG
    return How.SHAPE if match.sizes else How.ORDER


def _is_swallowed(expected: Expected, name: str) -> bool:
    """Whether an event only might be what a loop's next item runs: what nothing explains ends up there."""
    return name not in expected.names and isinstance(expected.site.node, (ast.For, ast.AsyncFor))


def _neighbour(found: _Found, at: int, step: int) -> Match | None:
    """The nearest event in one direction that has a place of its own."""
    matches = found.aligned.matches
    at += step
    while 0 <= at < len(matches):
        if matches[at].is_explained:
            return matches[at]
        at += step
    return None
