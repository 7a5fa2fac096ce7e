"""Replays recorded traces unchanged, and fixes whose effect was measured. Run as `python -m bench.replay [FOLDER]`.

For every step: the recorded time, the replayed one and the error. The recorded time is read from the events, not from
the graph: the host's span of the step or, where the host runs ahead, the time from the completion of the step before
to its own. An error of 0 alone would prove little, as what nothing explains is replayed as it was. So each trace also
shows how much that is (`unexplained_pct` of the replayed time), and the error with it left out
(`without_gaps_error_pct`). Last, savings predicted for fixes next to what they saved when they were made
(from `projects`, beside FOLDER).
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from torchtraceap.analyzer.timeline.edit import Edit
from torchtraceap.analyzer.timeline.graph import build_graph
from torchtraceap.analyzer.timeline.launches import build_launches
from torchtraceap.analyzer.timeline.model import CallTree, Launches, ReplayGraph, Steps
from torchtraceap.analyzer.timeline.replay import replay
from torchtraceap.analyzer.timeline.steps import find_steps
from torchtraceap.analyzer.timeline.tree import build_tree
from torchtraceap.analyzer.trace.model import DEVICE_CATEGORIES, HOST_CATEGORIES, NONE, FloatArray, IntArray, Trace
from torchtraceap.analyzer.trace.read import read_trace

from ..folder import trace_named, traces_folder
from ..results import Figure, Target, publish

TRACES = ("S01", "S02", "S05", "S06", "S08", "S10")
ALSO = ("S03", "S04", "S07", "S09", "S11", "S12", "S13", "S14")
TARGETS = {
    "error_pct": Target(at_most=2.0),
    "replay_cpu_ms": Target(at_most=15.0),
    "build_cpu_ms": Target(at_most=60.0),
}
LOADER = r"^enumerate\(DataLoader\)"
MEASURED: tuple[tuple[str, str, str, Callable[[IntArray], Edit]], ...] = (
    ("resnet_birds", "dataloader-in-main-process", LOADER, lambda rows: Edit(overlapped=rows)),
    ("resnet_birds", "per-parameter-grad-scan", r": grad_report$", lambda rows: Edit(removed_ops=rows)),
    ("unet_seg", "metric-on-host", r"unet_notebook.*: update$", lambda rows: Edit(removed_ops=rows)),
)
"""Project, fault, name of the rows that the fix takes out of the step, and the edit that it amounts to."""

T = TypeVar("T")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, publish, and answer 0 if every target is met."""
    traces = traces_folder("replay", __doc__, arguments)
    if traces is None:
        return 0
    figures = [figure for prefix in TRACES + ALSO for figure in _reproduction(trace_named(traces, prefix))]
    figures += list(_predictions(traces))
    notes = (
        "S01 is S02 with the loader in the main process: its predicted saving is set against S02's recorded step.",
        "measured_saving_pct of projects/ is from their truth.json.",
    )
    return 0 if publish("replay", figures, targets=TARGETS, notes=notes) else 1


def _reproduction(path: Path) -> Iterable[Figure]:
    recording = _Recording.of(path)
    build_ms, graph = _least_cpu_ms(recording.graph)
    replay_ms, unchanged = _least_cpu_ms(lambda: replay(graph, Edit()))
    bare = replay(replace(graph, gap_ns=np.zeros_like(graph.gap_ns)), Edit())
    recorded = recording.step_us(graph)
    name = path.name.split("_")[0]
    yield Figure(name, "without_gaps_error_pct", 100 * abs(bare.step_us / float(np.median(recorded)) - 1))
    yield Figure(name, "unexplained_pct", 100 * float(graph.gap_ns.sum()) / graph.span_ns)
    yield Figure(name, "nodes", float(len(graph.kind)))
    yield Figure(name, "build_cpu_ms", build_ms)
    yield Figure(name, "replay_cpu_ms", replay_ms)
    numbers = recording.steps.number[graph.steps[graph.is_steady]]
    for number, was, now in zip(numbers.tolist(), recorded.tolist(), unchanged.step_us_each.tolist(), strict=True):
        subject = f"{name} step {number}"
        yield Figure(subject, "recorded_us", was)
        yield Figure(subject, "replayed_us", now)
        yield Figure(subject, "error_pct", 100 * abs(now - was) / was)


@dataclass(frozen=True, slots=True)
class _Recording:
    """A trace with the parts that the graph is built from."""

    trace: Trace
    tree: CallTree
    launches: Launches
    steps: Steps

    @staticmethod
    def of(path: Path) -> _Recording:
        trace = read_trace(path)
        tree = build_tree(trace)
        launches = build_launches(trace, tree)
        return _Recording(trace, tree, launches, find_steps(trace, tree, launches))

    def graph(self) -> ReplayGraph:
        return build_graph(self.trace, self.steps, self.tree, self.launches)

    def step_us(self, graph: ReplayGraph) -> FloatArray:
        """The recorded time of each steady step, from the events."""
        steps, trace = self.steps, self.trace
        if not graph.device_paced:
            return steps.duration_ns[steps.steady] / 1e3
        rows = trace.rows(*DEVICE_CATEGORIES)
        ends = [trace.end_ns[rows[steps.of[rows] == step]].max(initial=0) for step in range(len(steps))]
        done = np.maximum(steps.end_ns, ends)
        earlier = trace.end_ns[rows[steps.of[rows] == NONE]]
        before = np.append(earlier[earlier < done[0]].max(initial=0), done[:-1])
        return ((done - np.maximum(steps.start_ns, before)) / 1e3)[steps.steady]

    def rows(self, pattern: str) -> IntArray:
        """Host rows whose name matches."""
        names = [i for i, name in enumerate(self.trace.names) if re.search(pattern, name)]
        rows = self.trace.rows(*HOST_CATEGORIES)
        return rows[np.isin(self.trace.name[rows], names)]


def _predictions(traces: Path) -> Iterable[Figure]:
    """Savings that the replay predicts for fixes that were made and measured."""
    for project, slug, pattern, edit in MEASURED:
        folder = traces.parent / "projects" / project
        if not folder.is_dir():
            continue
        recording = _Recording.of(folder / "trace.json.gz")
        truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
        fault = next(f for f in truth["faults"] if f["slug"] == slug)
        subject = f"{project} {slug}"
        yield Figure(subject, "predicted_saving_pct", _saving_pct(recording.graph(), edit(recording.rows(pattern))))
        yield Figure(subject, "measured_saving_pct", fault["saving_pct_measured"])
    one, four = (_Recording.of(trace_named(traces, prefix)) for prefix in ("S01", "S02"))
    before, after = (float(np.median(recording.step_us(recording.graph()))) for recording in (one, four))
    loading = Edit(overlapped=one.rows(LOADER))
    yield Figure("S01 dataloader-in-main-process", "predicted_saving_pct", _saving_pct(one.graph(), loading))
    yield Figure("S01 dataloader-in-main-process", "measured_saving_pct", 100 * (1 - after / before))


def _saving_pct(graph: ReplayGraph, edit: Edit) -> float:
    unchanged, edited = replay(graph, Edit()), replay(graph, edit)
    return 100 * float(np.median(unchanged.step_us_each - edited.step_us_each)) / unchanged.step_us


def _least_cpu_ms(work: Callable[[], T]) -> tuple[float, T]:
    """The least CPU time of five calls, and what the last one answered."""
    took = []
    while True:
        start = time.process_time()
        result = work()
        took.append(1e3 * (time.process_time() - start))
        if len(took) == 5:
            return min(took), result


if __name__ == "__main__":
    sys.exit(main())
