"""Small programs that can be recorded as they are and as a fix would leave them.

The builder plays a program on a simulated host and device. A replay of the first recording under an edit has to predict
the step times of the second recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tests.builders import TraceBuilder
from torchtraceap.analyzer.timeline.graph import build_graph
from torchtraceap.analyzer.timeline.launches import build_launches
from torchtraceap.analyzer.timeline.model import ReplayGraph
from torchtraceap.analyzer.timeline.steps import find_steps
from torchtraceap.analyzer.timeline.tree import build_tree
from torchtraceap.analyzer.trace.model import DEVICE_CATEGORIES, IntArray, Trace

STEPS = 3


@dataclass(frozen=True)
class Op:
    """An operator: its own host time and the kernels it launches, as (µs, stream)."""

    us: float
    kernels: tuple[tuple[float, int], ...] = ()
    syncs: bool = False
    """Whether the host then waits for the stream of the last kernel."""
    copies_us: float = 0
    """A copy from pageable memory, of this time; 0: none."""


@dataclass(frozen=True)
class Program:
    """A step as a sequence of operators, named by position, and a wait for the device at its end."""

    ops: tuple[Op, ...]
    scale: dict[int, float] = field(default_factory=dict)
    """Factors on the kernels of operators, by position."""
    host_scale: dict[int, float] = field(default_factory=dict)
    removed: frozenset[int] = frozenset()
    unsynced: frozenset[int] = frozenset()

    def record(self) -> Trace:
        """Play the program."""
        builder = TraceBuilder()
        for step in range(STEPS):
            with builder.step(step, us=4):
                for position, op in enumerate(self.ops):
                    if position not in self.removed:
                        self._play(builder, position, op)
                builder.synchronize()
        return builder.build()

    def _play(self, builder: TraceBuilder, position: int, op: Op) -> None:
        host, device = self.host_scale.get(position, 1.0), self.scale.get(position, 1.0)
        with builder.op(f"aten::op{position}", us=op.us * host):
            for us, stream in op.kernels:
                launch = builder.launch(us=builder.launch_us * host)
                kind = DEVICE_CATEGORIES[0]
                builder.device_work(kind, f"kernel{position}", us=us * device, launched=launch, stream=stream)
            if op.copies_us:
                builder.copy(us=op.copies_us)
            if op.syncs and position not in self.unsynced:
                builder.synchronize("cudaStreamSynchronize", stream=op.kernels[-1][1], us=0)

    def without(self, positions: Sequence[int]) -> Program:
        """The program with operators taken out."""
        return replace(self, removed=frozenset(positions))


def random_program(seed: int) -> Program:
    """A program of a few dozen operators that is now host-bound, now device-bound, with waits and copies."""
    rng = np.random.default_rng(seed)
    ops = []
    for _ in range(int(rng.integers(10, 40))):
        kernels = tuple(
            (float(rng.choice([2, 10, 40, 150])), int(rng.choice([7, 7, 7, 20]))) for _ in range(rng.integers(0, 4))
        )
        syncs = bool(kernels) and rng.random() < 0.12
        copies_us = float(rng.choice([0, 0, 0, 0, 0, 0, 0, 30]))
        ops.append(Op(float(rng.choice([4, 20, 60])), kernels, syncs, 0 if syncs else copies_us))
    return Program(tuple(ops))


def graph_of(trace: Trace) -> ReplayGraph:
    """The replay graph of a trace."""
    tree = build_tree(trace)
    launches = build_launches(trace, tree)
    return build_graph(trace, find_steps(trace, tree, launches), tree, launches)


def rows_named(trace: Trace, *names: str) -> IntArray:
    """Rows with one of these names."""
    return trace.rows_named(names)


def recorded_step_us(trace: Trace) -> np.ndarray:
    """Durations of the steps."""
    rows = trace.rows_named([f"ProfilerStep#{step}" for step in range(STEPS)])
    return trace.dur_ns[rows] / 1000
