"""Labels of windows are what was marked, exactly, and the same for traces with less in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from bench.corpus.cleaning import Spoiled, take_out, without_overhead  # noqa: E402
from bench.corpus.labels import find_spoilage, label_windows  # noqa: E402
from bench.corpus.running import record  # noqa: E402
from bench.corpus.variants import STRIPPED  # noqa: E402
from tests.bench.corpus.tiny import SLUG, tiny_job, unfuse  # noqa: E402
from torchtraceap.analyzer.detector.windows import cut  # noqa: E402
from torchtraceap.analyzer.timeline.build import build_timeline  # noqa: E402
from torchtraceap.analyzer.timeline.intervals import intersection, union  # noqa: E402
from torchtraceap.analyzer.timeline.model import Timeline  # noqa: E402
from torchtraceap.analyzer.trace.model import Category  # noqa: E402
from torchtraceap.analyzer.trace.read import read_trace  # noqa: E402

SOFTMAX = re.compile(r"^aten::_softmax(_backward_data)?$")


@dataclass
class Run:
    timeline: Timeline
    spoiled: tuple[Spoiled, ...]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    job = tiny_job()
    unfuse(job, 2)
    cleaned = take_out(without_overhead(record(job, steps=3, warm_up=1)), "tiny", moves_nothing=True)
    path: Path = tmp_path_factory.mktemp("traces") / "tiny.json"
    path.write_bytes(cleaned.document)
    return Run(build_timeline(read_trace(path)), cleaned.spoiled)


def test_what_is_marked_and_its_backward_pass_is_spoiled(run: Run) -> None:
    timeline = run.timeline
    kind = find_spoilage(timeline, run.spoiled, {SLUG: None})[SLUG]
    trace = timeline.trace
    rows = trace.rows(Category.CPU_OP)
    covered = np.array(
        [
            bool(((kind.host.start_ns <= trace.ts_ns[row]) & (trace.end_ns[row] <= kind.host.end_ns)).any())
            for row in rows
        ]
    )
    named = np.array([bool(SOFTMAX.match(trace.name_of(row))) for row in rows])
    assert named.sum() == 3 * 2 * 2
    assert covered[named].all(), "each softmax of the two written out attentions, there and back"
    fused = np.array(["scaled_dot_product" in trace.name_of(row) for row in rows])
    assert fused.any()
    assert not covered[fused].any(), "the third is fused"
    optimizer = np.array([trace.name_of(row).startswith("Optimizer.step") for row in rows])
    assert not covered[optimizer].any()


def test_shares_add_up_to_the_marked_time(run: Run) -> None:
    timeline = run.timeline
    windows = cut(timeline)
    spoilage = list(find_spoilage(timeline, run.spoiled, {SLUG: None, "split-qkv": None}).values())
    labels = label_windows(timeline, windows, spoilage)
    time_ns = windows.end_ns - windows.start_ns
    steps_ns = timeline.steps.duration_ns[timeline.steps.steady].sum()
    assert (labels.share[:, 0] * time_ns).sum() == pytest.approx(spoilage[0].host.total_ns)
    assert 0 < spoilage[0].host.total_ns < 0.9 * steps_ns
    assert not labels.share[:, 1].any()
    for step in np.unique(windows.step):
        assert labels.cost[windows.step == step].sum() == pytest.approx(1.0)


def test_a_rule_of_a_fault_spoils_what_it_names_and_what_that_calls(run: Run) -> None:
    timeline = run.timeline
    trace = timeline.trace
    norms = np.isin(np.arange(len(trace)), trace.rows_named(["aten::batch_norm"]))
    (kind,) = find_spoilage(timeline, (), {"batchnorm-not-folded": lambda timeline: norms}).values()
    rows = np.append(np.flatnonzero(norms), trace.rows_named(["aten::native_batch_norm_backward"]))
    spans = union(trace.ts_ns[rows], trace.end_ns[rows])
    assert kind.host.total_ns >= spans.total_ns
    assert kind.host.total_ns < 3 * spans.total_ns


def test_a_fact_is_told_of_what_no_fault_has_spoiled(run: Run) -> None:
    timeline = run.timeline
    trace = timeline.trace
    fact, slug = np.isin(np.arange(len(trace)), trace.rows_named(["aten::softmax", "aten::batch_norm"])), "launch-bound"
    alone = find_spoilage(timeline, (), {}, {slug: lambda timeline: fact})[slug]
    beside = find_spoilage(timeline, run.spoiled, {SLUG: None}, {slug: lambda timeline: fact})
    assert set(beside) == {SLUG, slug}
    norms = trace.rows_named(["aten::batch_norm", "aten::native_batch_norm_backward"])
    assert beside[slug].host.total_ns == pytest.approx(trace.dur_ns[norms].sum(), rel=0.6)
    assert beside[slug].host.total_ns < alone.host.total_ns
    assert not len(intersection(beside[slug].host, beside[SLUG].host))


@pytest.mark.parametrize("variant", [name for name in STRIPPED if name != "device only"])
def test_labels_are_the_same_with_less_recorded(run: Run, variant: str) -> None:
    timeline = run.timeline
    spoilage = list(find_spoilage(timeline, run.spoiled, {SLUG: None}).values())
    stripped = build_timeline(STRIPPED[variant](timeline.trace))

    def spoiled_share(of: Timeline) -> float:
        labels = label_windows(of, cut(of), spoilage)
        return float((labels.share[:, 0] * labels.cost).sum())

    assert spoiled_share(stripped) == pytest.approx(spoiled_share(timeline), rel=0.01)


@pytest.mark.parametrize(("variant", "frames", "shapes"), [("no stacks", 0, 1), ("no shapes", 1, 0), ("neither", 0, 0)])
def test_variants_lack_what_they_say(run: Run, variant: str, frames: int, shapes: int) -> None:
    trace = STRIPPED[variant](run.timeline.trace)
    assert bool(len(trace.rows(Category.PYTHON_FUNCTION))) == bool(frames)
    assert bool((trace.inputs >= 0).any()) == bool(shapes)
    assert len(trace.rows(Category.CPU_OP)) == len(run.timeline.trace.rows(Category.CPU_OP))
