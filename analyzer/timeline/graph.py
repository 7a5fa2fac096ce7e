"""The dependency graph of the recorded steps, for the what-if replay.

What depends on what:
- A host thread does one thing after the other at the pace it was recorded at, less the stretches in which it waited.
- A device event starts when it has been launched, the event before it on its stream is done, and what its stream was
  told to wait for is done. Launching takes `launch_ns`, passing from one event to the next `stream_ns`: at most what is
  usual in this trace, less where the recording was quicker. What neither explains is kept as `gap_ns`.
- A synchronising call holds the host until the device events it waits for are done, and then takes as long as it took
  after that in the recording. A launching call that a full queue held up counts as one.
- A helper thread starts from where the main thread stood, and the main thread waits for it where it did so.

Nodes are in order of host time, which is an order of dependence: whatever anything waits for was launched before.
"""

from __future__ import annotations

import numpy as np

from ..trace.model import NONE, Int32Array, IntArray, Trace
from .columns import is_among, median
from .handover import find_handovers
from .host_axis import HostAxis, lay_out
from .model import EARLIER, CallTree, Launches, NodeKind, ReplayGraph, Steps
from .nodes import Nodes, concatenate, device_nodes, host_nodes
from .streams import DeviceWork, collect
from .waits import HostWait, host_waits, stream_waits, unrecorded_waits

_RUN_AHEAD = 0.25
"""The device sets the pace when at the end of a step it lags behind the host by more than this share of the step."""

_AT_SAME_TIME = np.zeros(len(NodeKind), dtype=np.int64)
"""Order of kinds at one moment: what others build on comes first."""
_AT_SAME_TIME[
    [NodeKind.ENTRY, NodeKind.DEVICE, NodeKind.JOIN, NodeKind.STEP_END, NodeKind.STEP_START, NodeKind.WAIT]
] = range(len(NodeKind))

Pairs = list[tuple[int, int]]


def build_graph(trace: Trace, steps: Steps, tree: CallTree, launches: Launches) -> ReplayGraph:
    """Build the graph of the steps from the first steady one to the last. Without steps the graph is empty."""
    replayed = _replayed_steps(steps)
    start_ns = int(steps.start_ns[replayed[0]]) if len(replayed) else 0
    end_ns = int(steps.end_ns[replayed[-1]]) if len(replayed) else 0
    axis = lay_out(trace, tree, steps, start_ns, end_ns)
    work = collect(trace, launches, steps, axis, end_ns)
    waits = host_waits(trace, axis, work)
    wait_start, wait_end = _device_wait_stretches(axis, waits)
    handover = find_handovers(trace, tree, axis, wait_start, wait_end)
    held = stream_waits(trace, axis, work)
    held += unrecorded_waits(work, device_nodes(trace, axis, work, held).gap_ns)
    nodes = concatenate(device_nodes(trace, axis, work, held), host_nodes(axis, steps, replayed, waits, handover))
    edges = held + [(len(work.row) + i, event) for i, wait in enumerate(waits) for event in wait.events]
    order = _order(nodes, edges)
    edge_start, edge_source = _edges(edges, order)
    node_of_row = np.full(len(trace), NONE, dtype=np.int32)
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    node_of_row[work.row] = place[: len(work.row)]
    wait_start, wait_end = _merged(
        np.concatenate([wait_start, handover.main_start[handover.joined]]),
        np.concatenate([wait_end, handover.main_end[handover.joined]]),
    )
    host_ns, period_ns, lag_ns = _recorded(steps, replayed, work)
    is_steady = ~steps.is_warmup[replayed]
    return ReplayGraph(
        origin_ns=axis.origin_ns,
        span_ns=axis.span_ns,
        row_start=axis.row_start,
        row_end=axis.row_end,
        wait_start=wait_start,
        wait_end=wait_end,
        kind=nodes.kind[order],
        row=nodes.row[order],
        queue=nodes.queue[order],
        lane=nodes.lane[order],
        position=nodes.position[order],
        call=nodes.call[order],
        duration_ns=nodes.duration_ns[order],
        launch_ns=nodes.launch_ns[order],
        stream_ns=nodes.stream_ns[order],
        gap_ns=nodes.gap_ns[order],
        edge_start=edge_start,
        edge_source=edge_source,
        peer=nodes.peer[order],
        step=nodes.step[order],
        node_of_row=node_of_row,
        steps=replayed,
        is_steady=is_steady,
        host_ns=host_ns,
        period_ns=period_ns,
        device_paced=axis.lanes == 0 or _runs_ahead(lag_ns[is_steady], host_ns[is_steady]),
    )


def _replayed_steps(steps: Steps) -> IntArray:
    steady = steps.steady
    return np.arange(steady[0], steady[-1] + 1) if len(steady) else np.empty(0, dtype=np.int64)


def _device_wait_stretches(axis: HostAxis, waits: list[HostWait]) -> tuple[IntArray, IntArray]:
    """Positions from which to which the host waited for the device in the recording, in order and apart."""
    rows = np.array([wait.row for wait in waits], dtype=np.int64)
    until = np.array([wait.until_ns for wait in waits], dtype=np.int64)
    start = axis.row_start[rows]
    end = axis.at(axis.lane_at(start), until)
    return _merged(start[end > start], end[end > start])


def _merged(start: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
    """Union of intervals as intervals in order that do not touch."""
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    first = np.ones(len(start), dtype=bool)
    first[1:] = start[1:] > reach[:-1]
    last = np.append(first[1:], True) if len(first) else first
    return start[first], reach[last]


def _order(nodes: Nodes, edges: Pairs) -> IntArray:
    """Nodes in order of dependence. A wait comes after all that it waits for, wherever its call began."""
    key = nodes.key_ns.copy()
    if edges:
        node, source = np.array(edges).T
        is_wait = nodes.kind[node] == NodeKind.WAIT
        np.maximum.at(key, node[is_wait], key[source[is_wait]])
    return np.lexsort((_AT_SAME_TIME[nodes.kind], key))


def _edges(edges: Pairs, order: IntArray) -> tuple[Int32Array, Int32Array]:
    """Edges by the place of their nodes in `order`, grouped by the node that waits; those against it are left out."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    node, source = place[np.array(edges, dtype=np.int64).reshape(-1, 2)].T
    node, source = node[source < node], source[source < node]
    by_node = np.argsort(node, kind="stable")
    start = np.zeros(len(order) + 1, dtype=np.int32)
    np.cumsum(np.bincount(node, minlength=len(order)), out=start[1:])
    return start, source[by_node].astype(np.int32)


def _recorded(steps: Steps, replayed: IntArray, work: DeviceWork) -> tuple[IntArray, IntArray, IntArray]:
    """Of each replayed step its host span, its time from completion to completion, and the device's lag at its end."""
    start, end = steps.start_ns[replayed], steps.end_ns[replayed]
    completed = end.copy()
    within = is_among(np.maximum(work.step, NONE), replayed)
    np.maximum.at(completed, work.step[within] - (replayed[0] if len(replayed) else 0), work.end_ns[within])
    before = work.end_ns[work.step == EARLIER]
    ready = np.concatenate([[before.max(initial=0)], np.maximum.accumulate(completed)[:-1]])[: len(replayed)]
    return end - start, completed - np.maximum(start, ready), completed - end


def _runs_ahead(lag_ns: IntArray, host_ns: IntArray) -> bool:
    return bool(len(lag_ns)) and median(lag_ns) > _RUN_AHEAD * median(host_ns)
