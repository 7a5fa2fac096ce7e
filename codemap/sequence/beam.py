"""The cheapest path of a sequence of events through a program, and how sure it is for each event.

Only the positions that may still lie on the cheapest path are followed (a beam), and between two events only the nodes
that can be reached at a bounded cost are looked at: the automaton has thousands of nodes, of which a few dozen matter
at any moment. A second pass from the end gives, for every event, the cheapest path that puts it on another statement.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...analyzer.trace.model import OpInputs
from ..automaton import NEVER
from .events import RANGE
from .program import Expected, Program
from .within import NOWHERE, UNKNOWN, Mismatch, Within

_Costs = npt.NDArray[np.float32]
_Nodes = npt.NDArray[np.int64]

_BEAM = 9.0
"""Positions that cost so much more than the cheapest are given up."""
_REACH = 7.0
"""What passing expected operators silently may cost between two events."""
_JUMP = 7.5
"""Cost of going on anywhere else in the program."""
_ODD_START = 1.0
"""Cost of starting elsewhere than at the head of a loop."""
_MOST_REACHED = 600
_MOST_POSITIONS = 400
_UNSEEN, _FILLED = 0.5, 0.4
"""What counts beside the cost: more for what unseen code may have run, less for the filling of parameters."""
_LONG = 16
_LEAST_SIZED = 0.25
"""Events of a run that is right by itself, and the share of them that were recognised by sizes."""
_NEAR = 5
"""How many events to both sides say whether the program fits here."""
_QUIET = frozenset({"alias", "to", "lift_fresh", "resolve_conj", "resolve_neg", "detach_", "view"})
"""Operators that libraries run on the way."""
_FILLING = frozenset({"empty", "detach", "uniform_", "normal_", "fill_", "zero_", "erfinv_"})
"""Operators that making a layer runs, which no program is walked for."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where one event comes from."""

    expected: Expected | None
    """None where nothing of the program is near it."""
    is_explained: bool
    """Whether it matched; else `expected` is what came before it."""
    confidence: float
    """That the statement is right, as far as the program itself says: from 0.5 (another fits as well) to 1."""
    function_confidence: float
    """That the function is."""
    sizes: int
    """How many sizes and numbers of the source it was recognised by."""
    is_named: bool = False
    """Whether it is an operator that the program says, not merely one that unseen code may run."""
    is_odd: bool = False
    """Whether the program does not lead there, or not at all says what the event is."""

    @property
    def is_certain(self) -> bool:
        """Whether it is the one operator that the program says comes next."""
        return self.is_named and not self.is_odd and self.expected is not None and self.expected.repeat == NEVER


@dataclass(frozen=True, slots=True)
class Aligned:
    """A sequence of events with their places."""

    matches: tuple[Match, ...]
    cost: float
    """Surprises in all."""
    fillings: int = 0
    """Unexplained events that only fill the parameters of layers."""

    @property
    def unseen(self) -> int:
        """Events that are explained by nothing but code that is not in the workspace."""
        return sum(match.is_explained and not match.is_named for match in self.matches)

    @property
    def score(self) -> float:
        """Surprises for each event; what may be anything is half a surprise."""
        return (self.cost + _UNSEEN * self.unseen - _FILLED * self.fillings) / max(len(self.matches), 1)

    def firm(self) -> list[bool]:
        """For each event, whether it lies in a long run of events that the program says one after the other, some of
        them recognised by their sizes: such a run is right also where the rest fits badly."""
        firm = [False] * len(self.matches)
        first = 0
        for at in range(len(self.matches) + 1):
            if at == len(self.matches) or not self.matches[at].is_certain:
                run = self.matches[first:at]
                sized = sum(match.sizes > 0 for match in run)
                if len(run) >= _LONG and sized >= _LEAST_SIZED * len(run):
                    firm[first:at] = [True] * len(run)
                first = at + 1
        return firm


@dataclass(frozen=True, slots=True)
class Label:
    """What an event shows."""

    name: str
    inputs: OpInputs
    within: Within = UNKNOWN


@dataclass(frozen=True, slots=True)
class _Stage:
    """The transitions over one event that survived. `source` and `target` number positions before and after it."""

    source: _Nodes
    target: _Nodes
    cost: _Costs
    stay_source: _Nodes
    stay_target: _Nodes
    stay_cost: float
    jump_target: _Nodes
    jump_cost: _Costs


@dataclass(frozen=True, slots=True)
class _Fits:
    """Which nodes an event may come from."""

    dense: _Costs
    """Shape (nodes + 1,): cost of coming from each."""
    named: _Nodes
    named_cost: _Costs


class Aligner:
    """Aligns sequences of events with one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        nodes = program.nodes
        self._count = len(nodes)
        self._after: list[list[tuple[int, float]]] = [[] for _ in nodes]
        for node, sources in enumerate(program.before):
            for source, cost in sources:
                self._after[source].append((node, cost))
        self._anything = np.array([NEVER if one is None else one.anything for one in nodes] + [NEVER], np.float32)
        self._mismatch = Mismatch(
            [*(NOWHERE if one is None else one.within for one in nodes), NOWHERE],
            [*(one is not None and one.is_open for one in nodes), False],
        )
        self._by_name: dict[str, list[int]] = {}
        for number, one in enumerate(nodes):
            for name in one.names if one is not None else ():
                self._by_name.setdefault(name, []).append(number)
        self._reached: dict[int, tuple[_Nodes, _Costs]] = {self._count: self._from_start()}
        self._fits: dict[Label, _Fits] = {}
        self._statement = np.array([*(0 if one is None else id(one.site.statement) for one in nodes), -1], np.int64)
        self._function = np.array([*(0 if one is None else id(one.site.function) for one in nodes), -1], np.int64)

    def align(self, labels: Sequence[Label]) -> Aligned:
        """The places of a sequence of events."""
        positions: list[_Nodes] = [np.array([self._count])]
        forward: list[_Costs] = [np.zeros(1, np.float32)]
        stages = []
        for label in labels:
            stage, nodes, costs = self._advance(positions[-1], forward[-1], label)
            stages.append(stage)
            positions.append(nodes)
            forward.append(costs)
        ahead = np.zeros(len(positions[-1]), np.float32)
        matches: list[Match] = []
        for number in range(len(labels) - 1, -1, -1):
            stage = stages[number]
            matches.append(self._decide(stage, positions, forward[number], ahead, number, labels[number]))
            ahead = _back(stage, len(positions[number]), ahead)
        placed = _by_neighbours(matches[::-1])
        fillings = sum(
            not match.is_explained and label.name in _FILLING for match, label in zip(placed, labels, strict=True)
        )
        return Aligned(placed, float(forward[-1].min()), fillings)

    def _advance(self, nodes: _Nodes, costs: _Costs, label: Label) -> tuple[_Stage, _Nodes, _Costs]:
        """One event further: the transitions kept, and the positions after it with their costs."""
        fits = self._fit(label)
        reached = [self._reach(int(node)) for node in nodes]
        lengths = [len(targets) for targets, _ in reached]
        source = np.repeat(np.arange(len(nodes)), lengths)
        target = np.concatenate([targets for targets, _ in reached])
        step = np.concatenate([far for _, far in reached]) + fits.dense[target]
        total = costs[source] + step
        stay_cost = _unexplained(label)
        jump = fits.named_cost + np.float32(_JUMP + costs.min())
        least = min(total.min(initial=NEVER), costs.min() + stay_cost, jump.min(initial=NEVER))
        kept = total <= least + _BEAM
        source, target, step, total = source[kept], target[kept], step[kept], total[kept]
        stays = np.flatnonzero(costs + stay_cost <= least + _BEAM)
        jumps = jump <= least + _BEAM
        ends = np.concatenate([target, nodes[stays], fits.named[jumps]])
        after, place = np.unique(ends, return_inverse=True)
        best = np.full(len(after), NEVER, np.float32)
        np.minimum.at(best, place, np.concatenate([total, costs[stays] + stay_cost, jump[jumps]]).astype(np.float32))
        first, second = len(target), len(target) + len(stays)
        stage = _Stage(
            source, place[:first], step, stays, place[first:second], stay_cost, place[second:], fits.named_cost[jumps]
        )
        if len(after) > _MOST_POSITIONS:
            stage, after, best = _cut(stage, after, best)
        return stage, after, best

    def _decide(
        self, stage: _Stage, positions: list[_Nodes], costs: _Costs, ahead: _Costs, number: int, label: Label
    ) -> Match:
        """The place of one event: the cheapest whole path through each place, compared."""
        after = positions[number + 1]
        moves = costs[stage.source] + stage.cost + ahead[stage.target]
        jumps = costs.min() + np.float32(_JUMP) + stage.jump_cost + ahead[stage.jump_target]
        stays = costs[stage.stay_source] + np.float32(stage.stay_cost) + ahead[stage.stay_target]
        total = np.concatenate([moves, jumps, stays])
        node = after[np.concatenate([stage.target, stage.jump_target, stage.stay_target])]
        best = int(total.argmin())
        chosen = int(node[best])
        expected = self._program.nodes[chosen] if chosen < self._count else None
        is_explained = best < len(moves) + len(jumps)
        is_odd = best >= len(moves)
        known = 0
        is_named = expected is not None and is_explained and label.name in expected.names
        if is_named and expected is not None and expected.inputs is not None:
            known = expected.inputs.cost(label.inputs)[1]
        return Match(
            expected,
            is_explained,
            _sureness(total, self._statement[node], best),
            _sureness(total, self._function[node], best),
            known,
            is_named,
            is_odd,
        )

    def _fit(self, label: Label) -> _Fits:
        if label not in self._fits:
            named = np.array(self._by_name.get(label.name, ()), np.int64)
            costs = np.array([self._cost(int(node), label) for node in named], np.float32)
            dense = self._anything.copy() if not label.name.startswith("@") else np.full_like(self._anything, NEVER)
            dense[named] = np.minimum(dense[named], costs)
            elsewhere = self._mismatch.costs(label.within)
            self._fits[label] = _Fits(dense + elsewhere, named, costs + elsewhere[named])
        return self._fits[label]

    def _cost(self, node: int, label: Label) -> float:
        expected = self._program.nodes[node]
        if expected is None:
            return NEVER
        cost = expected.names[label.name]
        return cost if expected.inputs is None else cost + expected.inputs.cost(label.inputs)[0]

    def _from_start(self) -> tuple[_Nodes, _Costs]:
        costs = np.full(self._count, _ODD_START, np.float32)
        for start in self._program.starts:
            costs[start] = 0.0
            for node, far in zip(*self._reach_from([(start, 0.0)], 0.0), strict=True):
                costs[node] = min(costs[node], far)
        return np.arange(self._count), costs

    def _reach(self, node: int) -> tuple[_Nodes, _Costs]:
        """Nodes that the next event after one at `node` may come from, with the cost of what is passed silently."""
        if node not in self._reached:
            expected = self._program.nodes[node]
            nodes, costs = self._reach_from(self._after[node], _REACH)
            if expected is not None and expected.repeat < NEVER:
                nodes, costs = np.append(nodes, node), np.append(costs, np.float32(expected.repeat))
            self._reached[node] = nodes, costs
        return self._reached[node]

    def _reach_from(self, start: list[tuple[int, float]], limit: float) -> tuple[_Nodes, _Costs]:
        queue = [(cost, node) for node, cost in start]
        heapq.heapify(queue)
        seen: set[int] = set()
        nodes, costs = [], []
        while queue and len(nodes) < _MOST_REACHED:
            cost, node = heapq.heappop(queue)
            if node in seen:
                continue
            seen.add(node)
            expected = self._program.nodes[node]
            if expected is not None:
                nodes.append(node)
                costs.append(cost)
                cost += expected.skip
            if cost > limit:
                continue
            for following, more in self._after[node]:
                if following not in seen and cost + more <= limit:
                    heapq.heappush(queue, (cost + more, following))
        return np.array(nodes, np.int64), np.array(costs, np.float32)


def _cut(stage: _Stage, after: _Nodes, best: _Costs) -> tuple[_Stage, _Nodes, _Costs]:
    """The same with the cheapest positions only."""
    kept = np.sort(np.argpartition(best, _MOST_POSITIONS)[:_MOST_POSITIONS])
    place = np.full(len(after), -1)
    place[kept] = np.arange(len(kept))
    moves, stays, jumps = (place[ends] >= 0 for ends in (stage.target, stage.stay_target, stage.jump_target))
    cut = _Stage(
        stage.source[moves],
        place[stage.target[moves]],
        stage.cost[moves],
        stage.stay_source[stays],
        place[stage.stay_target[stays]],
        stage.stay_cost,
        place[stage.jump_target[jumps]],
        stage.jump_cost[jumps],
    )
    return cut, after[kept], best[kept]


def _back(stage: _Stage, count: int, ahead: _Costs) -> _Costs:
    """Cheapest cost of the events from here on, from each position before the stage's event."""
    jump = float((stage.jump_cost + ahead[stage.jump_target]).min(initial=NEVER)) + _JUMP
    costs = np.full(count, jump, np.float32)
    np.minimum.at(costs, stage.source, stage.cost + ahead[stage.target])
    np.minimum.at(costs, stage.stay_source, ahead[stage.stay_target] + np.float32(stage.stay_cost))
    return costs


def _by_neighbours(matches: Sequence[Match]) -> tuple[Match, ...]:
    """The matches, those less sure round which the program does not fit."""
    odd = np.concatenate([[0], np.cumsum([match.is_odd for match in matches])])
    at = np.arange(len(matches))
    first, last = np.maximum(at - _NEAR, 0), np.minimum(at + _NEAR + 1, len(matches))
    fits = 1.0 - 0.7 * (odd[last] - odd[first]) / (last - first)
    return tuple(
        match
        if share == 1.0
        else replace(match, confidence=match.confidence * share, function_confidence=match.function_confidence * share)
        for match, share in zip(matches, fits.tolist(), strict=True)
    )


def _sureness(total: _Costs, place: npt.NDArray[np.int64], best: int) -> float:
    """A logistic curve over the margin: a tie is even odds, one surprise of difference makes it nine to one."""
    elsewhere = total[place != place[best]]
    margin = float(elsewhere.min(initial=_BEAM + float(total[best])) - total[best])
    return 1.0 / (1.0 + math.exp(-2.2 * min(margin, 20.0)))


def _unexplained(label: Label) -> float:
    """Cost of an event that nothing in the program explains."""
    if label.name in _FILLING:
        return 0.5
    if label.name.startswith(RANGE):
        return 0.3
    return 0.6 if label.name in _QUIET else 1.6
