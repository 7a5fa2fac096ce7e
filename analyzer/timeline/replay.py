"""The what-if replay: runs the recorded dependency graph again, with an edit, and answers the new step times.

Savings come from here and nowhere else: what a fix saves is the time of the unchanged replay less that of the edited
one, so host work that the device hides, and device work that the host hides, save nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from ..trace.model import BoolArray, FloatArray, Int32Array, IntArray
from .columns import distinct, median
from .edit import Edit
from .model import EARLIER, NodeKind, ReplayGraph

NS_PER_US = 1000.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """Step times of a replay."""

    step_us: float
    """Median over the steady steps; 0 if there are none."""
    step_us_each: FloatArray
    """Shape (steady steps,)."""


def replay(graph: ReplayGraph, edit: Edit) -> Replayed:
    """Replay the graph with an edit.

    A step takes as long as the host needs from its start to its end and, if the device falls further behind from step
    to step than in the recording, as much longer. Where the device sets the pace, a step is the time from the
    completion of the one before to its own. Unchanged, that is the recorded time.
    """
    if not len(graph.steps):
        return Replayed(0.0, np.empty(0))
    clock = _HostClock.of(graph, edit)
    host_ns, period_ns = _run(graph, edit, clock)
    step_ns = period_ns if graph.device_paced else host_ns + _falls_behind_ns(graph, host_ns, period_ns)
    each = np.maximum(step_ns, clock.overlapped_ns)[graph.is_steady] / NS_PER_US
    return Replayed(median(each), each)


def per_step_us(us_each: FloatArray, baseline: Replayed, *, is_periodic: bool) -> float:
    """What savings in each of the steps come to for one step: their median, or, for work that comes round once in
    several steps, their share of all steps together as so much of a median step. Never below 0."""
    if not len(us_each):
        return 0.0
    if is_periodic:
        return max(float(us_each.sum() / baseline.step_us_each.sum()) * baseline.step_us, 0.0)
    typical = median(us_each)
    # Where some steps get longer, what most of them save may only have moved there.
    return max(min(typical, float(us_each.mean())) if (us_each < 0).any() else typical, 0.0)


def _falls_behind_ns(graph: ReplayGraph, host_ns: FloatArray, period_ns: FloatArray) -> float:
    """By how much more than in the recording the device falls behind per step: in most steps, and over all of them."""
    more = ((period_ns - host_ns) - (graph.period_ns - graph.host_ns))[graph.is_steady]
    return max(min(median(more), float(np.mean(more))), 0.0)


@dataclass(frozen=True, slots=True)
class _HostClock:
    """Host time that threads spend on their own work, up to a position: what positions become under an edit."""

    at_node: FloatArray
    """Shape (nodes,): up to each node's position."""
    at_peer: FloatArray
    """Shape (nodes,): up to each node's peer position."""
    at_lane: FloatArray
    """Shape (lanes,): up to the beginning of each lane."""
    overlapped_ns: FloatArray
    """Shape (steps,): own time of each step that is spent beside it."""

    @staticmethod
    def of(graph: ReplayGraph, edit: Edit) -> _HostClock:
        """The clock under an edit. Waiting is nobody's own time; it comes from the graph."""
        scaled = [(_stretches(graph, scale.rows), scale.factor) for scale in edit.scales]
        gone, beside = _stretches(graph, edit.removed_ops), _stretches(graph, edit.overlapped)
        waits = (graph.wait_start, graph.wait_end)
        cuts = distinct(np.concatenate([[0], *waits, *gone, *beside, *(ends for pair, _ in scaled for ends in pair)]))
        rate = np.full(len(cuts), edit.host_factor)
        for stretches, factor in scaled:
            rate[_covered(cuts, stretches)] *= factor
        rate[_covered(cuts, gone) | _covered(cuts, waits)] = 0.0
        is_beside = _covered(cuts, beside)
        own = _integral(cuts, np.where(is_beside, rate * edit.kept_share, rate))
        other = _integral(cuts, np.where(is_beside, rate, 0.0))
        lanes = np.arange(int(graph.lane.max(initial=0)) + 1)
        starts, ends = (graph.position[graph.kind == k] for k in (NodeKind.STEP_START, NodeKind.STEP_END))
        return _HostClock(
            at_node=own(graph.position),
            at_peer=own(graph.peer),
            at_lane=own(lanes * graph.span_ns),
            overlapped_ns=other(ends) - other(starts),
        )


@dataclass(frozen=True, slots=True)
class _Work:
    """Device work under an edit. Arrays have shape (nodes,); host nodes weigh nothing."""

    done_ns: FloatArray
    """Running sum of what every node adds to its stream: gap, unexplained wait and duration."""
    before_ns: FloatArray
    """The same, without the node itself."""
    launched_ns: FloatArray
    """Earliest start by the host's clock, less `before_ns` and the stream's gap; -inf if nothing launches it."""
    is_live: BoolArray
    """False for device work that is not launched any more, and for waits that are not waited."""

    @staticmethod
    def of(graph: ReplayGraph, edit: Edit, clock: _HostClock) -> _Work:
        """Device work with an edit's factors applied and removed operators' launches left out."""
        duration = graph.duration_ns.astype(np.float64)
        for scale in edit.scales:
            duration[_device_nodes(graph, scale.rows)] *= scale.factor
        is_wait = graph.kind == NodeKind.WAIT
        is_live = ~_within(graph.call, _stretches(graph, edit.removed_ops))
        is_live[_device_nodes(graph, edit.removed_ops)] = False
        for rows in (edit.unsynced, edit.overlapped):
            is_live &= ~(is_wait & _within(graph.call, _stretches(graph, rows)))
        added = np.where(is_live, graph.stream_ns + graph.gap_ns + duration, 0.0)
        done = np.cumsum(added)
        is_launched = is_live & (graph.position >= 0)
        launched = clock.at_node + graph.launch_ns - graph.stream_ns - (done - added)
        return _Work(done, done - added, np.where(is_launched, launched, -np.inf), is_live)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Nodes taken together: device events launched in a row by one thread on one stream; any other node stands alone.

    Within a run, event k is done at `done[k] + max(floor, late + reach[k])`: `floor` is when the stream is free, `late`
    how late the thread is, and `reach[k]` the latest of the launches up to k.
    """

    first: IntArray
    """Shape (runs,): the first node of each; a run ends where the next begins."""
    of_node: IntArray
    """Shape (nodes,): the run of each node."""

    @staticmethod
    def of(graph: ReplayGraph) -> _Runs:
        """The runs of a graph, whatever the edit."""
        alone = (graph.kind != NodeKind.DEVICE) | (np.diff(graph.edge_start) > 0)
        begins = alone | (np.diff(graph.queue, prepend=-1) != 0) | (np.diff(graph.lane, prepend=-1) != 0)
        begins[1:] |= graph.kind[:-1] != NodeKind.DEVICE
        return _Runs(np.flatnonzero(begins), np.cumsum(begins) - 1)

    def running_maximum(self, values: FloatArray) -> FloatArray:
        """The largest of each node's run so far. Each pass looks back twice as far."""
        found = values.copy()
        place = np.arange(len(values)) - self.first[self.of_node]
        back, inside = 1, np.flatnonzero(place >= 1)
        while len(inside):
            found[inside] = np.maximum(found[inside], found[inside - back])
            back *= 2
            inside = inside[place[inside] >= back]
        return found


def _run(graph: ReplayGraph, edit: Edit, clock: _HostClock) -> tuple[FloatArray, FloatArray]:
    """Host span and period of each step, in ns."""
    work, runs = _Work.of(graph, edit, clock), _Runs.of(graph)
    reach = runs.running_maximum(work.launched_ns)
    source = graph.edge_source
    # Plain lists: the loop looks at one number at a time.
    source_run, source_done, source_reach = (column[source].tolist() for column in (runs.of_node, work.done_ns, reach))
    floor, late_in = [0.0] * len(runs.first), [0.0] * len(runs.first)
    late = (-clock.at_lane).tolist()
    """Per lane: how much later than its own clock a thread is, from waiting."""
    free: dict[int, float] = {}
    marks = np.zeros(len(graph.kind))

    def source_end(edge: int) -> float:
        run = source_run[edge]
        return source_done[edge] + max(floor[run], late_in[run] + source_reach[edge])

    for run, node, kind, lane, queue, first_edge, last_edge, own, stream_ns, before, done, reached in _columns(
        graph, clock, work, runs, reach
    ):
        held_until = max(map(source_end, range(first_edge, last_edge))) if first_edge < last_edge else -inf
        if kind == NodeKind.DEVICE:
            floor[run] = max(free.get(queue, 0.0), held_until - stream_ns) - before
            late_in[run] = late[lane]
            free[queue] = done + max(floor[run], late[lane] + reached)
        elif kind == NodeKind.WAIT:
            late[lane] = max(late[lane], held_until - own)
        elif kind == NodeKind.ENTRY:
            late[lane] = float(clock.at_peer[node]) + late[0] + float(graph.launch_ns[node]) - own
        elif kind == NodeKind.JOIN:
            helper = int(graph.peer[node] // graph.span_ns)
            late[lane] = max(late[lane], float(clock.at_peer[node]) + late[helper] - own)
        elif graph.position[node] >= 0:
            marks[node] = own + late[lane]
    ready = np.maximum(np.array(floor)[runs.of_node], np.array(late_in)[runs.of_node] + reach)
    return _step_times(graph, work.done_ns + ready, marks)


def _columns(
    graph: ReplayGraph, clock: _HostClock, work: _Work, runs: _Runs, reach: FloatArray
) -> Iterator[tuple[int, int, int, int, int, int, int, float, float, float, float, float]]:
    """What the loop needs of each run: of its first node, and, in the last two columns, of its last one.

    What does not run any more waits for nothing: it has no edges.
    """
    first, last = runs.first, np.append(runs.first[1:], len(graph.kind)) - 1
    columns = (
        np.arange(len(first)),
        first,
        graph.kind[first],
        graph.lane[first],
        graph.queue[first],
        graph.edge_start[first],
        graph.edge_start[np.where(work.is_live[first], first + 1, first)],
        clock.at_node[first],
        graph.stream_ns[first],
        work.before_ns[first],
        work.done_ns[last],
        reach[last],
    )
    return zip(*(column.tolist() for column in columns), strict=True)


def _step_times(graph: ReplayGraph, ended: FloatArray, marks: FloatArray) -> tuple[FloatArray, FloatArray]:
    start, end = (marks[graph.kind == kind] for kind in (NodeKind.STEP_START, NodeKind.STEP_END))
    is_device = graph.kind == NodeKind.DEVICE
    inside = is_device & (graph.step >= graph.steps[0]) & (graph.step <= graph.steps[-1])
    completed = end.copy()
    np.maximum.at(completed, graph.step[inside] - graph.steps[0], ended[inside])
    before = ended[is_device & (graph.step == EARLIER)].max(initial=0.0)
    ready = np.append(before, np.maximum.accumulate(completed)[:-1])
    return end - start, completed - np.maximum(start, ready)


_Stretches = tuple[IntArray, IntArray]
"""Positions where stretches begin and where they end; they may overlap."""


def _stretches(graph: ReplayGraph, rows: IntArray) -> _Stretches:
    """The stretches of the host rows among `rows`."""
    host = rows[graph.row_start[rows] >= 0]
    return graph.row_start[host], graph.row_end[host]


def _device_nodes(graph: ReplayGraph, rows: IntArray) -> Int32Array:
    """The nodes of the device rows among `rows`; what was launched before the first replayed step stays as it was."""
    nodes = graph.node_of_row[rows]
    nodes = nodes[nodes >= 0]
    return nodes[graph.step[nodes] != EARLIER]


def _covered(cuts: IntArray, stretches: _Stretches) -> BoolArray:
    """Whether each piece between cuts lies in a stretch; the cuts hold all ends of stretches."""
    start, end = (np.bincount(np.searchsorted(cuts, ends), minlength=len(cuts)) for ends in stretches)
    return np.cumsum(start - end) > 0


def _within(positions: IntArray, stretches: _Stretches) -> BoolArray:
    """Whether each position lies in a stretch, its end left out."""
    start, end = (np.sort(ends) for ends in stretches)
    return np.searchsorted(start, positions, side="right") > np.searchsorted(end, positions, side="right")


def _integral(cuts: IntArray, rate: FloatArray) -> Callable[[IntArray], FloatArray]:
    """The integral from 0 of a function that is `rate[i]` from cuts[i] to cuts[i + 1]; cuts[0] is 0."""
    total = np.append(0.0, np.cumsum(rate[:-1] * np.diff(cuts)))

    def up_to(positions: IntArray) -> FloatArray:
        piece = np.maximum(np.searchsorted(cuts, positions, side="right") - 1, 0)
        return total[piece] + rate[piece] * (positions - cuts[piece])

    return up_to
