from __future__ import annotations

import numpy as np
import pytest

from tests.shared import shared_timeline
from torchtraceap.analyzer.diagnosis.dossier import TreeRow
from torchtraceap.analyzer.diagnosis.merged import below, merged_tree, shown_name, summed_up
from torchtraceap.analyzer.diagnosis.tree import call_tree
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.timeline.select import ops_named, us_per_step
from torchtraceap.analyzer.trace.model import NONE

RESNET = "traces/S06_hta_resnet50_v100_ns.json.gz"
TRACES = (RESNET, "traces/S02_kineto_resnet50_w4_v100.json.gz", "traces/S12_ao_vit_bf16_compile_a100.json.gz")
NOTHING = np.empty(0, dtype=np.int64)


def parents(rows: tuple[TreeRow, ...]) -> list[tuple[TreeRow, TreeRow]]:
    """Each row but the first with the one above it."""
    path: list[TreeRow] = []
    found = []
    for row in rows:
        del path[row.depth :]
        assert len(path) == row.depth, "a row lies one below one before it"
        if path:
            found.append((row, path[-1]))
        path.append(row)
    return found


@pytest.mark.parametrize("trace", TRACES)
def test_rows_are_a_tree_of_which_nothing_takes_more_than_what_it_is_part_of(trace: str) -> None:
    rows = call_tree(shared_timeline(trace), NOTHING)
    assert 1 < len(rows) <= 20
    assert [row.id for row in rows] == [f"t{number}" for number in range(1, len(rows) + 1)]
    for row, above in parents(rows):
        if above.depth:
            assert row.total_us <= above.total_us + 1e-6
            assert (row.device_us or 0.0) <= (above.device_us or 0.0) + 1e-6
        assert row.self_us <= row.total_us + 1e-6


@pytest.mark.parametrize("trace", TRACES)
def test_the_first_row_is_the_step(trace: str) -> None:
    timeline = shared_timeline(trace)
    first = call_tree(timeline, NOTHING)[0]
    assert (first.name, first.calls, first.total_us, first.share_pct) == ("step", 1.0, timeline.step_us, 100.0)


def test_figures_are_those_of_the_events() -> None:
    timeline = shared_timeline(RESNET)
    convolutions = ops_named(timeline, ("aten::conv2d",))
    row = next(row for row in call_tree(timeline, convolutions) if row.name == "aten::conv2d")
    assert row.total_us == pytest.approx(us_per_step(timeline, convolutions))
    assert row.calls == 53
    device = timeline.device_rows[np.isin(outer_ops(timeline, "aten::conv2d"), convolutions)]
    assert row.device_us == pytest.approx(us_per_step(timeline, device))


def outer_ops(timeline: Timeline, name: str) -> np.ndarray:
    """For each device row the operator of that name round its launch; NONE if there is none."""
    found = []
    for op in timeline.launches.op[timeline.device_rows].tolist():
        round_it = [op, *timeline.tree.ancestors(op)] if op != NONE else []
        found.append(next((row for row in round_it if timeline.trace.name_of(row) == name), NONE))
    return np.array(found)


def test_all_device_work_is_somewhere() -> None:
    timeline = shared_timeline(RESNET)
    merged = merged_tree(timeline)
    assert (merged.of[timeline.device_rows] != NONE).all()
    one_step = len(timeline.steps.steady) == 1
    whole = merged.device_us[[node for node in range(1, len(merged)) if merged.parent[node] == 0]].sum()
    assert whole == pytest.approx(us_per_step(timeline, timeline.device_rows), rel=1e-6 if one_step else 0.02)


def test_what_the_finding_is_of_is_shown_however_little_it_takes() -> None:
    timeline = shared_timeline(RESNET)
    rows = timeline.trace.rows_named(("aten::nll_loss_nd", "aten::nll_loss", "aten::cross_entropy_loss"))
    rows = rows[timeline.steps.are_steady(rows)]
    assert len(rows)
    names = {row.name for row in call_tree(timeline, rows)}
    assert names & {timeline.trace.name_of(row) for row in rows.tolist()}
    assert not {row.name for row in call_tree(timeline, NOTHING)} & {timeline.trace.name_of(r) for r in rows.tolist()}


def test_fewer_rows_are_some_of_the_more() -> None:
    timeline = shared_timeline(RESNET)
    few, many = (call_tree(timeline, NOTHING, most) for most in (8, 16))
    assert len(few) == 8 and len(many) == 16
    assert few[0] == many[0]


def test_sums_and_marks_go_along_the_tree() -> None:
    merged = merged_tree(shared_timeline(RESNET))
    ones = np.ones(len(merged))
    assert summed_up(merged, ones)[0] == len(merged)
    top = np.arange(len(merged)) == 0
    assert below(merged, top).all()
    leaf = np.arange(len(merged)) == len(merged) - 1
    assert below(merged, leaf).sum() == 1


def test_names_lose_what_differs_between_machines_and_executions() -> None:
    assert shown_name("/home/ada/work/net/src/models/vit.py(34): forward") == "models/vit.py(34): forward"
    assert shown_name("nn.Module: Bottleneck_12") == "Bottleneck"
    assert shown_name("autograd::engine::evaluate_function: AddmmBackward0") == "AddmmBackward0"
