"""`build_timeline`: a trace's meaning, part by part."""

from __future__ import annotations

from ..trace.model import DEVICE_CATEGORIES, Trace
from .breakdown import measure
from .costs import op_costs
from .devices import find_device
from .graph import build_graph
from .idle import find_idle
from .kernels import classify_kernels
from .launches import build_launches
from .model import Timeline
from .phases import find_forward_ops, find_marks, find_phases
from .steps import find_steps
from .tree import build_tree


def build_timeline(trace: Trace) -> Timeline:
    """Everything that rules may ask about `trace`. Any trace will do: what it lacks comes out empty or NONE."""
    tree = build_tree(trace)
    launches = build_launches(trace, tree)
    steps = find_steps(trace, tree, launches)
    kernel_class = classify_kernels(trace, launches, tree)
    marks = find_marks(trace)
    forward_op = find_forward_ops(trace, tree, launches, marks)
    phase = find_phases(trace, tree, launches, steps, marks, forward_op)
    idle = find_idle(trace, steps, tree, launches, phase, kernel_class)
    graph = build_graph(trace, steps, tree, launches)
    device_rows = trace.rows(*DEVICE_CATEGORIES)
    return Timeline(
        trace=trace,
        device=find_device(trace),
        steps=steps,
        tree=tree,
        launches=launches,
        device_rows=device_rows[steps.are_steady(device_rows)],
        forward_op=forward_op,
        phase=phase,
        kernel_class=kernel_class,
        costs=op_costs(trace),
        idle=idle,
        breakdown=measure(trace, steps, phase, kernel_class, idle, graph.device_paced),
        graph=graph,
    )
