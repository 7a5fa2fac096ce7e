"""Which action of a function's body each of its frame's events comes from.

A trace says what a frame did but not on which line. The frame's direct children, in time order, are aligned with the
automaton of its body (`grammar.py`): dynamic programming over (events consumed, position in the body) finds the
cheapest path, where passing an action without its event costs `skip`, an event that no action explains costs
`_unexplained`, and control flow is free. A second pass from the end gives, for every event, the cheapest path that
puts it on another statement: the difference says how sure the place is.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .automaton import NEVER, Action, Automaton
from .labels import Kind, Label
from .statements import header_end

_Costs = npt.NDArray[np.float32]
_Event = tuple[Label, int]
"""What an event shows, and the line on which it ran (0 if unknown)."""

_ODD_START = 2.0
"""Cost of starting or ending elsewhere than the recording says."""
_TOLERATED_EXIT = 3.0
"""What leaving early costs at most: an exception explains the rest."""
_UNLIKE = 1.0
"""What a match costs at most on the very line that an event is known to have run on."""
_ASTRAY = 2.5
"""Cost of not being where that line is."""
_PLUMBING = frozenset(
    {
        "__getattr__",
        "__setattr__",
        "__delattr__",
        "__getattribute__",
        "__get__",
        "__set__",
        "__del__",
        "__hash__",
        "__eq__",
        "__instancecheck__",
        "__subclasscheck__",
        "__torch_function__",
        "__array_function__",
        "__array_ufunc__",
        "__array_finalize__",
        "__init_subclass__",
        "__set_name__",
    }
)
"""Methods that the interpreter or a library calls with nothing to see in the source."""
_BEAM = 12.0
"""Paths that cost so much more than the cheapest are given up."""
_MOST_POSITIONS = 1_200
_NAMED = 0.4
"""A match that costs less is by name."""
_MOST_NAMED = 2_000
"""Positions that are followed at most: time and memory grow with their square."""
_MAX_PASSES = 8
"""Relaxations of the distances: one, and one for each level of nested loops."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What is known of the part of a frame that was recorded."""

    from_entry: bool = True
    """The frame was entered while recording (and is no resumed generator)."""
    to_exit: bool = True
    """The frame returned while recording."""
    start_line: int = 0
    """The line that ran when recording began, for a frame that was on the stack then; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where one event comes from."""

    action: Action | None
    """None if the body has no action at all that could be near it."""
    confidence: float
    """From 0.5 (another statement explains it as well) to 1."""
    other: Action | None
    """The best action on another statement, when nearly as good."""
    explained: bool = True
    """False for an event that no action matches; `action` is then the one before it (for a frame, after it)."""


_NO_MATCH = Match(None, 0.0, None, explained=False)


class Alignment:
    """The alignment of one frame's events. Time grows with events x actions: keep frames under some 2,000 events.

    `lines` gives, where it is known, the line on which each event ran (0 where it is not): such an event comes from a
    statement that holds the line, and so tells more of its neighbours.
    """

    def __init__(
        self, automaton: Automaton, labels: Sequence[Label], extent: Extent, lines: Sequence[int] = ()
    ) -> None:
        self._labels = labels
        self._problem = _Problem(automaton, labels, extent, lines or (0,) * len(labels))
        self._forward = _forward(self._problem)
        self._backward = _backward(self._problem)
        self._matches: dict[int, Match] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, step: int) -> Match:
        """Where event number `step` comes from."""
        at, on_the_way = step, []
        while at not in self._matches:
            is_ambiguous = self._problem.is_ambiguous[at]
            match = _NO_MATCH if is_ambiguous else _decide(self._problem, self._forward, self._backward, at)
            # A function that nothing explains (a dispatcher, a descriptor) runs on the way to what follows it.
            is_passed = not match.explained and not is_ambiguous and self._labels[at].kind is Kind.FRAME
            if is_passed and at + 1 < len(self._labels):
                on_the_way.append(at)
                at += 1
            else:
                self._matches[at] = match
        self._matches |= dict.fromkeys(on_the_way, replace(self._matches[at], explained=False))
        return self._matches[step]


@dataclass(frozen=True, slots=True)
class _Options:
    """What one kind of event can mean."""

    match: _Costs
    """Shape (positions,): cost of coming from each; infinite where it cannot."""
    unexplained: np.float32
    """Cost of leaving it unexplained."""


class _Problem:
    """The automaton cut down to the positions that matter: the entry and every action that some event may match."""

    def __init__(self, automaton: Automaton, labels: Sequence[Label], extent: Extent, lines: Sequence[int]) -> None:
        actions = automaton.actions
        events = list(zip(labels, lines, strict=True))
        costs = {event: _match_costs(actions, *event) for event in dict.fromkeys(events)}
        ambiguous = _ambiguous(costs)
        for event in ambiguous:
            costs[event] = np.full(len(actions), NEVER, np.float32)
        self.is_ambiguous = [event in ambiguous for event in events]
        possible = _positions(automaton, costs.values())
        self.nodes = np.flatnonzero(possible)
        self.actions = [actions[node] for node in self.nodes]
        into = _distances(automaton, self.nodes)
        self.between: _Costs = into[:, self.nodes]
        repeats = np.array([NEVER if action is None else action.repeat for action in self.actions], np.float32)
        diagonal = np.arange(len(self.nodes))
        self.between[diagonal, diagonal] = np.minimum(self.between[diagonal, diagonal], repeats)
        self.start = _start_costs(self.nodes, automaton, extent)
        self.end = _end_costs(into, automaton, extent)
        if not extent.from_entry:
            self.between[0] = _running_start(self.actions, extent.start_line)
        self.between_back: _Costs = np.ascontiguousarray(self.between.T)
        self.statements = np.array([id(_statement(action)) for action in self.actions])
        options = {event: _Options(cost[self.nodes], np.float32(_unexplained(*event))) for event, cost in costs.items()}
        self.steps = [options[event] for event in events]

    def arrive(self, last: _Costs) -> _Costs:
        """Cheapest cost of standing just before each position, from the costs of standing after each."""
        live = _live(last)
        return (self.between[live] + last[live][:, None]).min(axis=0)

    def onward(self, ahead: _Costs) -> _Costs:
        """The same backwards: from after each position, to the costs of what comes before each."""
        live = _live(ahead)
        return (self.between_back[live] + ahead[live][:, None]).min(axis=0)


def _live(costs: _Costs) -> npt.NDArray[np.int64]:
    """Positions that the cheapest path may still come through; all others cost far more already."""
    return np.flatnonzero(costs <= costs.min() + _BEAM)


def _ambiguous(costs: Mapping[_Event, _Costs]) -> frozenset[_Event]:
    """The events that most places of a huge body name, left out so that the rest stays within bounds."""
    named = {event: cost < _NAMED for event, cost in costs.items()}
    followed = np.zeros(len(next(iter(named.values()), ())), np.bool_)
    left_out = set()
    for event in sorted(named, key=lambda event: int(named[event].sum())):
        if (followed | named[event]).sum() > _MOST_NAMED:
            left_out.add(event)
        else:
            followed |= named[event]
    return frozenset(left_out)


def _positions(automaton: Automaton, costs: Iterable[_Costs]) -> npt.NDArray[np.bool_]:
    """Nodes that some event may come from, with the entry and the places of resumption.

    In a huge body only those that an event names, not those that merely could be called anything.
    """
    cheapest = np.full(len(automaton.actions), NEVER, np.float32)
    for cost in costs:
        np.minimum(cheapest, cost, out=cheapest)
    possible = cheapest < NEVER
    if possible.sum() > _MOST_POSITIONS:
        possible = cheapest < _NAMED
    possible[[0, *automaton.resumes]] = True
    return possible


def _match_costs(actions: Sequence[Action | None], label: Label, line: int) -> _Costs:
    """Cost of the event coming from each action. One whose line is known comes from that line, expected or not."""
    costs = np.array([NEVER if action is None else action.cost(label) for action in actions], np.float32)
    if not line:
        return costs
    is_there = [action is not None and _holds(action.statement, line) for action in actions]
    return np.where(is_there, np.minimum(costs, _UNLIKE), NEVER).astype(np.float32)


def _unexplained(label: Label, line: int = 0) -> float:
    """Cost of an event that nothing in the body explains: small for what runs behind a program's back."""
    if line:
        return _ASTRAY
    if label.kind is Kind.OPERATOR:
        return 1.6
    if label.kind is Kind.MODULE:
        return 2.5
    if label.kind is Kind.BUILTIN:
        return 2.0 if label.owner in ("Tensor", "type") else 1.0
    is_plumbing = label.name in _PLUMBING or label.name.endswith("_dispatcher") or label.file_is_frozen
    return 0.3 if is_plumbing else 1.3


def _distances(automaton: Automaton, sources: npt.NDArray[np.int64]) -> _Costs:
    """Shape (sources, nodes): cost from just after each source to just before each node, by actions passed silently."""
    actions, before = automaton.actions, automaton.before
    count = len(actions)
    # Node-major, so that each relaxation works on contiguous rows.
    into = np.full((count, len(sources)), NEVER, np.float32)
    after = np.full((count, len(sources)), NEVER, np.float32)
    column = {int(node): position for position, node in enumerate(sources)}
    for node, position in column.items():
        after[node, position] = 0.0
    skips = [0.0 if action is None else action.skip for action in actions]
    loops = [node for node in range(count) if any(source >= node for source, _ in before[node])]
    for _ in range(_MAX_PASSES):
        heads = into[loops].copy()
        for node in range(count):
            reached = into[node]
            for source, cost in before[node]:
                np.minimum(reached, after[source] + cost if cost else after[source], out=reached)
            np.minimum(after[node], reached + skips[node] if skips[node] else reached, out=after[node])
        if not loops or np.array_equal(heads, into[loops]):
            break
    return into.T


def _start_costs(nodes: npt.NDArray[np.int64], automaton: Automaton, extent: Extent) -> _Costs:
    """Cost of standing after each position before the first event."""
    start = np.full(len(nodes), NEVER, np.float32)
    start[0] = 0.0
    if extent.from_entry:
        start[np.isin(nodes, automaton.resumes)] = 0.1
    return start


def _running_start(actions: Sequence[Action | None], line: int) -> _Costs:
    """Cost of going from the entry straight to each action, in a frame that ran already: the recorded line leads."""
    start = np.full(len(actions), _ODD_START if line else 0.0, np.float32)
    for position, action in enumerate(actions):
        if action is not None and line and _spans(action.statement, line):
            start[position] = 0.0
    return start


def _end_costs(into: _Costs, automaton: Automaton, extent: Extent) -> _Costs:
    """Cost of nothing more happening after each position: the frame returned, or was suspended at a `yield`."""
    if not extent.to_exit:
        return np.zeros(len(into), np.float32)
    return np.minimum(into[:, [-1, *automaton.resumes]].min(axis=1), _TOLERATED_EXIT)


def _spans(statement: ast.AST, line: int) -> bool:
    first = getattr(statement, "lineno", 0)
    return first <= line <= (getattr(statement, "end_lineno", None) or first)


def _holds(statement: ast.AST, line: int) -> bool:
    """Whether the line is the statement's own: of one that holds a block, its header's."""
    return _spans(statement, line) and line <= max(header_end(statement)[0], getattr(statement, "lineno", 0))


def _forward(problem: _Problem) -> list[_Costs]:
    """Entry k: cheapest cost of having consumed k events and standing after each position."""
    rows = [problem.start]
    for options in problem.steps:
        last = rows[-1]
        rows.append(np.minimum(last + options.unexplained, problem.arrive(last) + options.match))
    return rows


def _backward(problem: _Problem) -> list[_Costs]:
    """Entry k: cheapest cost of consuming the events from k on, from each position."""
    rows = [problem.end]
    for options in reversed(problem.steps):
        following = rows[-1]
        rows.append(np.minimum(following + options.unexplained, problem.onward(options.match + following)))
    return rows[::-1]


def _decide(problem: _Problem, forward: list[_Costs], backward: list[_Costs], step: int) -> Match:
    """The place of event `step`: the cheapest whole path through each place, compared."""
    options = problem.steps[step]
    last, following = forward[step], backward[step + 1]
    stay = last + options.unexplained + following
    through = problem.arrive(last) + options.match + following
    costs = np.concatenate([through, [stay.min()]])
    places = np.concatenate([np.arange(len(through)), [stay.argmin()]])
    best = int(costs.argmin())
    if not costs[best] < NEVER:
        return _NO_MATCH
    action = problem.actions[places[best]]
    elsewhere = np.where(problem.statements[places] == problem.statements[places[best]], NEVER, costs)
    margin = float(elsewhere.min() - costs[best])
    other = problem.actions[places[int(elsewhere.argmin())]] if margin < 1.0 else None
    # A logistic curve: a tie is even odds, one surprise of difference makes it nine to one.
    confidence = 1.0 / (1.0 + math.exp(-2.2 * min(margin, 20.0)))
    return Match(action, confidence, other, explained=best < len(through))


def _statement(action: Action | None) -> ast.AST | None:
    return None if action is None else action.statement
