"""Which part of a step each event belongs to, and which forward operator each backward operator came from."""

from __future__ import annotations

import re
from enum import IntEnum

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, NONE, BoolArray, Category, Int8Array, Int32Array, IntArray, Trace
from .columns import distinct
from .model import CallTree, Launches, Phase, Steps
from .tree import enclosing, is_step_mark

_MARK = re.compile(
    r"(?P<DATA>^enumerate\(DataLoader\)#|torch/utils/data/dataloader\.py\(\d+\): __next__$)"
    r"|(?P<OPTIMIZER>^Optimizer\.(?:step|zero_grad)#|torch/optim/\w+\.py\(\d+\): (?:step|zero_grad)$)"
    r"|(?P<BACKWARD_CALL>^<built-in method run_backward of |torch/(?:autograd/__init__|_tensor)\.py\(\d+\): backward$"
    r"|torch/autograd/graph\.py\(\d+\): _engine_run_backward$)"
    r"|(?P<BACKWARD_NODE>^autograd::engine::evaluate_function: |Backward\d*$)"
    r"|(?P<MODULE>^nn\.Module: )"
)


class Mark(IntEnum):
    """What the name of a host event says about its phase."""

    NONE = 0
    DATA = 1
    OPTIMIZER = 2
    BACKWARD_CALL = 3
    """Python's call of the autograd engine."""
    BACKWARD_NODE = 4
    """An autograd node being run: `evaluate_function`, and in old traces the `...Backward` operator itself."""
    MODULE = 5


def find_marks(trace: Trace) -> Int8Array:
    """Shape (n,): the `Mark` of each host event; only operators count as nodes."""
    found = (_MARK.search(name) for name in trace.names)
    of_name = np.array([Mark[m.lastgroup or "NONE"] if m else Mark.NONE for m in found], dtype=np.int8)
    mark = np.where(_is_host(trace), of_name[trace.name], Mark.NONE)
    mark[(mark == Mark.BACKWARD_NODE) & (trace.cat != Category.CPU_OP)] = Mark.NONE
    return mark


def find_phases(
    trace: Trace, tree: CallTree, launches: Launches, steps: Steps, mark: Int8Array, forward_op: Int32Array
) -> Int8Array:
    """Shape (n,): the `Phase` of each event; device work has the phase of the call, else the operator, behind it.

    Backward covers the calls that start it, every autograd node, and all of a thread that does nothing else. Forward
    is what runs inside modules, or between the first and the last operator of a step that a backward node came from;
    with neither (inference without stacks), every operator that is in no other phase.
    """
    phase = np.full(len(trace), Phase.OTHER, dtype=np.int8)
    marks = _marks_of_nest(tree, mark)
    is_backward = _has(marks, Mark.BACKWARD_NODE) | _has(marks, Mark.BACKWARD_CALL)
    is_backward |= _autograd_threads(trace, mark, is_backward)[trace.thread] & _is_host(trace)
    in_module = _has(marks, Mark.MODULE)
    phase[_is_forward(trace, tree, steps, forward_op, is_backward, in_module)] = Phase.FORWARD
    phase[is_backward] = Phase.BACKWARD
    phase[_has(marks, Mark.OPTIMIZER)] = Phase.OPTIMIZER
    phase[_has(marks, Mark.DATA)] = Phase.DATA
    device_rows = trace.rows(*DEVICE_CATEGORIES)
    cause = np.where(launches.runtime[device_rows] >= 0, launches.runtime[device_rows], launches.op[device_rows])
    phase[device_rows] = np.where(cause >= 0, phase[cause], Phase.OTHER)
    return phase


def find_forward_ops(trace: Trace, tree: CallTree, launches: Launches, mark: Int8Array) -> Int32Array:
    """Shape (n,): the forward operator of each event under a backward node, and of the device work launched there.

    A forward operator and its backward node carry the same sequence number, and so does whatever looked at the
    counter before the operator took the number: views, the operators round it, operators without gradients. The last
    one to start is the one that took it. Activation checkpointing runs forward operators again inside a backward node:
    those have no forward operator but themselves, and a node inside another node belongs to one of them.
    """
    is_node = (mark == Mark.BACKWARD_NODE) & (trace.sequence >= 0)
    node = enclosing(tree.parent, is_node)
    above = np.where(tree.parent >= 0, node[tree.parent], NONE)
    is_root = is_node & ((above < 0) | (trace.sequence[above] != trace.sequence))
    roots = np.flatnonzero(is_root)
    if not len(roots):
        return np.full(len(trace), NONE, dtype=np.int32)
    is_inner = above[roots] >= 0
    is_candidate = (trace.cat == Category.CPU_OP) & (trace.sequence >= 0) & ~is_node
    in_backward = node >= 0

    found = np.full(len(trace), NONE, dtype=np.int32)
    first_pass = np.flatnonzero(is_candidate & ~in_backward)
    # An arrow ends at the node's own operator, inside `evaluate_function`.
    nodes = np.flatnonzero(is_node)
    named = _by_flow(trace, nodes, first_pass)
    found[enclosing(tree.parent, is_root)[nodes[named >= 0]]] = named[named >= 0]
    missing = roots[found[roots] < 0]
    found[missing] = _last_before(trace, missing, first_pass)
    inner = roots[is_inner]
    again = _last_before(trace, inner, np.flatnonzero(is_candidate & in_backward))
    same_thread = (again >= 0) & (trace.thread[again] == trace.thread[inner])
    found[inner] = np.where(same_thread, again, found[inner])

    # Inside a node only operators that are run again, with gradients on, look at the counter.
    is_run_again = is_candidate & in_backward
    forward = np.append(found, NONE)[enclosing(tree.parent, is_root | is_run_again)]
    device_rows = trace.rows(*DEVICE_CATEGORIES)
    forward[device_rows] = np.append(forward, NONE)[launches.op[device_rows]]
    return forward


def _last_before(trace: Trace, nodes: IntArray, candidates: IntArray) -> Int32Array:
    """For each node the last candidate with its sequence number that started before it; NONE if there is none."""
    if not len(candidates):
        return np.full(len(nodes), NONE, dtype=np.int32)
    # Rows are in order of time: one key orders by sequence number, then by start.
    size = len(trace)
    key = trace.sequence[candidates] * size + candidates
    order = np.argsort(key, kind="stable")
    place = np.searchsorted(key[order], trace.sequence[nodes] * size + nodes) - 1
    taken = candidates[order[np.maximum(place, 0)]]
    matches = (place >= 0) & (trace.sequence[taken] == trace.sequence[nodes])
    return np.where(matches, taken, NONE).astype(np.int32)


def _by_flow(trace: Trace, nodes: IntArray, candidates: IntArray) -> Int32Array:
    """The forward operators that `fwdbwd` arrows name, where several threads ran a forward pass.

    Each thread counts its own sequence numbers, so there they are ambiguous; elsewhere they say all.
    """
    found = np.full(len(nodes), NONE, dtype=np.int32)
    flows = trace.flows
    is_wanted = np.array([kind == "fwdbwd" for kind in flows.kinds], dtype=bool)[flows.kind]
    if not is_wanted.any() or len(distinct(trace.thread[candidates])) < 2:
        return found
    ends = zip(flows.end_thread[is_wanted].tolist(), flows.end_ts_ns[is_wanted].tolist(), strict=True)
    starts = zip(flows.start_thread[is_wanted].tolist(), flows.start_ts_ns[is_wanted].tolist(), strict=True)
    start_of_end = dict(zip(ends, starts, strict=True))
    row_at = {(int(trace.thread[row]), int(trace.ts_ns[row])): row for row in candidates}
    for i, node in enumerate(nodes):
        start = start_of_end.get((int(trace.thread[node]), int(trace.ts_ns[node])))
        if start is not None:
            found[i] = row_at.get(start, NONE)
    return found


def _is_forward(
    trace: Trace,
    tree: CallTree,
    steps: Steps,
    forward_op: Int32Array,
    is_backward: BoolArray,
    in_module: BoolArray,
) -> BoolArray:
    """Rows of the forward pass, those of the data loader and the optimizer not yet taken out."""
    is_source = np.zeros(len(trace), dtype=bool)
    is_source[forward_op[forward_op >= 0]] = True
    sources = np.flatnonzero(is_source & (steps.of >= 0) & ~is_backward)
    if not len(sources):
        return in_module if in_module.any() else tree.op >= 0
    step = steps.of[sources]
    first = np.full(len(steps), np.iinfo(np.int64).max)
    last = np.zeros(len(steps), dtype=np.int64)
    np.minimum.at(first, step, trace.ts_ns[_outermost_op(trace, tree)[sources]])
    np.maximum.at(last, step, trace.end_ns[sources])
    own = np.maximum(steps.of, 0)
    between = (steps.of >= 0) & (trace.ts_ns >= first[own]) & (trace.end_ns <= last[own])
    has_source = np.zeros(len(trace.threads), dtype=bool)
    has_source[trace.thread[sources]] = True
    return in_module | (_is_host(trace) & between & has_source[trace.thread])


def _outermost_op(trace: Trace, tree: CallTree) -> Int32Array:
    """Shape (n,): for a row under operators the outermost one of the unbroken nest; else the row itself."""
    is_op = trace.cat == Category.CPU_OP
    above = np.append(tree.parent, NONE)
    goes_on = is_op & (tree.parent >= 0) & is_op[above[:-1]]
    return enclosing(tree.parent, ~goes_on)


def _autograd_threads(trace: Trace, mark: Int8Array, is_backward: BoolArray) -> BoolArray:
    """Shape (threads,): threads that run autograd nodes and mark no step, optimizer or data loader of their own."""
    count = len(trace.threads)
    has_nodes = np.bincount(trace.thread[mark == Mark.BACKWARD_NODE], minlength=count) > 0
    is_own = is_step_mark(trace) | (mark == Mark.OPTIMIZER) | (mark == Mark.DATA)
    is_main = np.bincount(trace.thread[is_own], minlength=count) > 0
    if not is_main.any():
        # Without marks, the thread with the most operators outside backward is the program's own.
        own = (trace.cat == Category.CPU_OP) & ~is_backward
        is_main = np.arange(count) == np.bincount(trace.thread[own], minlength=max(count, 1)).argmax()
    return has_nodes & ~is_main


def _marks_of_nest(tree: CallTree, mark: Int8Array) -> Int8Array:
    """The marks of each row and of all that encloses it, as bits: 1 << `Mark`. Found as `enclosing` finds one."""
    found = np.append(np.int8(1) << mark, np.int8(0))
    jump = np.append(tree.parent, np.int32(NONE))
    open_rows = np.flatnonzero(jump >= 0)
    while len(open_rows):
        above = jump[open_rows]
        found[open_rows] |= found[above]
        jump[open_rows] = above = jump[above]
        open_rows = open_rows[above >= 0]
    return found[:-1]


def _has(marks: Int8Array, mark: Mark) -> BoolArray:
    return (marks >> mark) & 1 == 1


def _is_host(trace: Trace) -> BoolArray:
    return (trace.cat >= Category.CPU_OP) & (trace.cat <= Category.RUNTIME)
