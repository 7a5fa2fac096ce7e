"""Placing an event that nothing else places: by the statements of the program that can run such an operator.

Of several the one is meant that fits between the events before and after it. Where more than one fits, only the
function or the file that holds them all is named; where none does, nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..analyzer.findings import Grain, How, Location
from ..analyzer.timeline.model import Phase, Timeline
from ..analyzer.trace.model import NONE, Category, IntArray
from .knowledge import Knowledge
from .op_sites import OpSite, find_op_sites
from .recorded import RecordedFiles
from .sequence.events import BACKWARD, LOADER, STEP, ZERO_GRAD
from .statements import Place, line_of, location_of

_BETWEEN, _ONLY_ONE = 0.75, 0.55
"""Confidence in the only statement that fits: between its neighbours' lines, in the program."""
_ONE_FUNCTION, _ONE_FILE = 0.5, 0.4
_NEIGHBOURS = 24
"""Events on each side that are asked for their place."""
_SURE = 0.6
"""Confidence from which a neighbour's place counts."""
_RANGES = {"Optimizer.step#": STEP, "Optimizer.zero_grad#": ZERO_GRAD, "enumerate(DataLoader)#": LOADER}

Locate = Callable[[int], "Place | None"]


class ByOperator:
    """Locates by operator. `placed` gives the places that surer ways know, for the neighbours."""

    def __init__(self, timeline: Timeline, known: Knowledge, files: RecordedFiles, placed: Locate) -> None:
        self._timeline = timeline
        self._trace = timeline.trace
        self._known = known
        self._files = files
        self._placed = placed
        self._sites: Mapping[str, Sequence[OpSite]] | None = None
        self._tops: dict[int, IntArray] = {}
        self._neighbour: dict[int, Place | None] = {}
        self._found: dict[int, Place | None] = {}

    def locate(self, row: int, around: Location | None = None) -> Place | None:
        """The place of `row`; inside the function `around`, where a surer way knows so much."""
        for anchor, name, is_inside in self._anchors(row):
            if anchor not in self._found:
                self._found[anchor] = self._choose(anchor, name, around)
            if (place := self._found[anchor]) is not None:
                return _called(place) if is_inside else place
        return None

    def _anchors(self, row: int) -> Iterator[tuple[int, str, bool]]:
        """The outermost operator and torch's own range that `row` lies in, the nearer to its own line first: with what
        each is looked up as, and whether `row` is only called from there."""
        trace, tree, phase = self._trace, self._timeline.tree, self._timeline.phase[row]
        top, span = NONE, None
        for outer in (row, *tree.ancestors(row)):
            if trace.cat[outer] == Category.CPU_OP:
                top = outer
            elif trace.cat[outer] == Category.USER_ANNOTATION and span is None:
                text = trace.name_of(outer)
                span = next(((outer, name) for prefix, name in _RANGES.items() if text.startswith(prefix)), None)
        if span is not None and (span[0] == row or phase == Phase.OPTIMIZER):
            yield *span, False
            return
        if top != NONE:
            name = trace.name_of(top).rpartition("::")[2]
            yield top, BACKWARD if phase == Phase.BACKWARD else name, False
        # A dataset's own code runs inside the loader's range, an optimizer's closure inside the optimizer's.
        if span is not None:
            yield *span, True

    def _choose(self, row: int, name: str, around: Location | None) -> Place | None:
        if self._sites is None:
            self._sites = find_op_sites(self._known, self._files)
        inputs = self._trace.inputs_of(row)
        sites = [site for site in self._sites.get(name, ()) if site.allows(inputs)]
        if not sites:
            return None
        before, after = (self._nearest(row, step) for step in (-1, 1))
        functions = {(place.location.path, place.location.qualname) for place in (before, after) if place is not None}
        if around is not None:
            functions = {(around.path, around.qualname)}
        if len(functions) == 1:
            local = [site for site in sites if (site.path, site.function.qualname) in functions]
            between = [site for site in local if _lies_between(site, before, after)]
            if len({id(site.statement) for site in between}) == 1:
                return self._at(between[0], _BETWEEN)
            if local or around is not None:
                return self._in_function(local, name) if local else None
        return self._holding(sites, name)

    def _holding(self, sites: Sequence[OpSite], name: str) -> Place | None:
        """What holds all the sites: the statement, if it is one, else the function or the file."""
        statements = {id(site.statement) for site in sites}
        if len(statements) == 1:
            return self._at(sites[0], _ONLY_ONE)
        if len({(site.path, site.function.qualname) for site in sites}) == 1:
            return self._in_function(sites, name)
        if len({site.path for site in sites}) == 1:
            return self._in_file(sites, name, _ONE_FILE)
        return None

    def _in_function(self, sites: Sequence[OpSite], name: str) -> Place:
        """The function that holds all the sites; the file, for a module's own statements."""
        function, file = sites[0].function, self._known.file(sites[0].path)
        if function.name == "<module>":
            return self._in_file(sites, name, _ONE_FUNCTION)
        where = location_of(file, function.node, function.qualname, How.OPERATOR, _ONE_FUNCTION, Grain.FUNCTION)
        return Place(where, where.line, (), f"{_ways(sites, name)} here")

    def _in_file(self, sites: Sequence[OpSite], name: str, confidence: float) -> Place:
        file = self._known.file(sites[0].path)
        end = len(file.lines[0]) + 1
        where = Location(file.path, 1, 1, 1, end, "<module>", How.OPERATOR, confidence, Grain.FILE)
        return Place(where, 1, (), f"{_ways(sites, name)} in this file")

    def _at(self, site: OpSite, confidence: float) -> Place:
        file = self._known.file(site.path)
        where = location_of(file, site.statement, site.function.qualname, How.OPERATOR, confidence)
        return Place(where, line_of(site.node))

    def _nearest(self, row: int, direction: int) -> Place | None:
        """The place of the nearest event before (-1) or after (1) that a surer way places on a line."""
        rows = self._top_level(int(self._trace.thread[row]))
        at = int(np.searchsorted(rows, row)) + (direction if direction < 0 else 0)
        for _ in range(_NEIGHBOURS):
            if not 0 <= at < len(rows):
                return None
            other = int(rows[at])
            if other != row:
                if other not in self._neighbour:
                    self._neighbour[other] = self._placed(other)
                place = self._neighbour[other]
                if place is not None and place.location.grain is Grain.LINE and place.location.confidence >= _SURE:
                    return place
            at += direction
        return None

    def _top_level(self, thread: int) -> IntArray:
        """The operators of a thread that lie in no other, in time order."""
        if thread not in self._tops:
            trace, tree = self._trace, self._timeline.tree
            rows = trace.rows(Category.CPU_OP)
            rows = rows[trace.thread[rows] == thread]
            parent = tree.parent[rows]
            self._tops[thread] = rows[(parent == NONE) | (tree.op[parent] == NONE)]
        return self._tops[thread]


def _ways(sites: Sequence[OpSite], name: str) -> str:
    count, what = len({id(site.statement) for site in sites}), name.strip("@").replace("_", " ")
    return f"any of {count} statements can run {what}" if count > 1 else f"a statement can run {what}"


def _called(place: Place) -> Place:
    """The place of what a statement calls, from the statement's."""
    if place.location.grain is not Grain.LINE:
        return place
    return replace(
        place, location=replace(place.location, grain=Grain.CALL), note="somewhere inside what is called here"
    )


def _lies_between(site: OpSite, before: Place | None, after: Place | None) -> bool:
    """Whether a site stands between two places of its own function, the one who runs later also further down."""
    if before is None or after is None or before.line > after.line:
        return False
    return before.line <= line_of(site.node) <= after.line
