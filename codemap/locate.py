"""From an event of the trace to the statement that ran it: one way after the other, the surest first.

By what was on the stack (`stacks.py`: recorded lines, Python frames, `Call stack` arguments); else by `record_function`
tags and module calls (`regions.py`); else by the order and the shapes of the operators (`sequence`); else at the call
that builds the library's model that ran it (`libraries.py`); else by the statements that can run such an operator
(`by_operator.py`).
"""

from __future__ import annotations

from ..analyzer.findings import Grain
from ..analyzer.timeline.model import Timeline
from ..analyzer.trace.model import NONE
from .by_operator import ByOperator
from .exact import Exact
from .knowledge import Knowledge
from .labels import Label
from .libraries import Libraries
from .matched import Matched
from .recorded import RecordedFiles
from .regions import Regions
from .sequence.placer import SequencePlacer
from .stacks import Stacks
from .statements import Place
from .workspace import Workspace


class Locator:
    """Locates events of one trace in one workspace."""

    def __init__(self, timeline: Timeline, workspace: Workspace) -> None:
        self._timeline = timeline
        self._known = Knowledge(workspace)
        exact = Exact(timeline.trace, workspace)
        self._stacks = Stacks(timeline.trace, timeline.tree, self._known, exact)
        paths = frozenset(matched.path for matched in self._stacks.paths.values())
        self._recorded = RecordedFiles(workspace, paths) if paths or not self._stacks.names_files else None
        self._regions = self._libraries = self._sequence = self._by_operator = None
        if self._recorded is not None:
            self._regions = Regions(timeline, self._known, self._recorded)
            self._libraries = Libraries(timeline, self._known, self._recorded, self._stacks.paths)
            # Where frames name the program's files they tell more than the order of operators.
            self._sequence = None if paths else SequencePlacer(timeline, self._known, self._recorded)
            self._by_operator = ByOperator(timeline, self._known, self._recorded, self._placed)

    @property
    def known(self) -> Knowledge:
        """What was learnt of the workspace's files on the way."""
        return self._known

    @property
    def recorded_files(self) -> RecordedFiles | None:
        """The files that the recording may have run; None where its stacks name files, and none of the workspace."""
        return self._recorded

    def locate(self, row: int) -> Place | None:
        """The place of event `row`; a backward event is placed at its forward operator, unless code of the program ran
        it. None if there is none."""
        forward = int(self._timeline.forward_op[row])
        anchor = row if forward == NONE or self._stacks.is_within_operator(row) else forward
        place = self._placed(anchor)
        if self._by_operator is None or (place is not None and place.location.grain is Grain.LINE):
            return place
        if place is None:
            return self._by_operator.locate(anchor)
        if place.location.grain is not Grain.FUNCTION:
            return place
        guess = self._by_operator.locate(anchor, place.location)
        return guess if guess is not None and guess.location.grain is Grain.LINE else place

    def _placed(self, row: int) -> Place | None:
        """The place of `row` by all ways but its operator alone: the first that names a line, else what is known."""
        place = self._stacks.locate(row)
        if self._regions is None or self._libraries is None:
            return place
        if place is None:
            # The whole program tells more than the body of one module or range; it keeps to both.
            place = self._sequence.locate(row) if self._sequence is not None else None
            if place is None or place.location.grain is not Grain.LINE or not self._regions.allow(row, place):
                place = self._regions.locate(row) or place
        return self._libraries.explain(row, place) if place is not None else self._libraries.locate(row)

    def workspace_path(self, label: Label) -> Matched | None:
        """The workspace file that a frame's label names, if any."""
        return self._stacks.paths.get(label.owner)

    def class_place(self, name: str) -> tuple[str, int, str] | None:
        """Path, line and name of the class `name` in a file of the recording; None if none or several have it."""
        paths = {matched.path for matched in self._stacks.paths.values()}
        found = [(path, facts) for path in paths if (facts := self._known.index(path).classes.get(name)) is not None]
        if len(found) != 1:
            return None
        path, facts = found[0]
        return path, facts.node.lineno, facts.name
