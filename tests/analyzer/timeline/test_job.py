"""Ranks of one job on one clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.builders import TraceBuilder
from tests.patterns.ranks import Exchange, play_ranks
from tests.shared import shared
from torchtraceap.analyzer.analysis import analyze_job
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.collectives import CollectiveKind, find_collectives, kind_of
from torchtraceap.analyzer.timeline.job import Job, align, rank_of
from torchtraceap.analyzer.trace.limits import TraceError
from torchtraceap.analyzer.trace.model import NONE, Distributed, Problem, Trace
from torchtraceap.analyzer.trace.read import read_trace

CLOCKS_US = (0.0, 5_000_000.0, 123.25)
WORK_US = (1000.0, 1400.0, 2500.0)


def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
    b.leaf("aten::mm", kernel="sgemm", kernel_us=WORK_US[rank])
    yield Exchange(us=100)
    b.leaf("aten::mm", kernel="sgemm", kernel_us=500)
    yield Exchange("all_gather", us=50)


def job_of(traces: Sequence[Trace | str]) -> Job:
    job = analyze_job(traces).timeline.job
    assert job is not None
    return job


def test_collectives_are_matched_and_end_together_whatever_the_clocks_say():
    job = job_of(play_ranks(body, ranks=3, steps=2, clock_us=CLOCKS_US))
    assert job.numbers == (0, 1, 2) and job.reported == 0 and job.problems == ()
    assert job.kind.tolist() == 2 * [CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER]
    assert job.step.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(job.end_ns - job.end_ns[0], 0, atol=1)
    waited_us = (job.arrival_ns.max(axis=0) - job.arrival_ns) / 1000
    np.testing.assert_allclose(waited_us[:, 2], [1500, 1100, 0], atol=1)


def test_time_before_a_collective_is_told_apart():
    def loading(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        with b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", us=3000 * rank):
            pass
        yield from body(b, rank, step)

    job = job_of(play_ranks(loading, ranks=2, steps=1))
    np.testing.assert_allclose(job.loading_ns[:, 0] / 1000, [0, 3000], atol=1)
    np.testing.assert_allclose(job.computing_ns[:, 0] / 1000, WORK_US[:2], atol=1)
    np.testing.assert_allclose(job.computing_ns[:, 1] / 1000, [500, 500], atol=1)
    assert (job.other_ns[:, 0] > 10_000).all(), "the host's own time until its first kernel runs"
    assert (job.since_ns >= job.loading_ns + job.computing_ns + job.other_ns).all()


def test_the_lowest_rank_is_reported_whatever_the_order():
    traces = play_ranks(body, ranks=3, steps=1)
    analysis = analyze_job([traces[2], traces[0], traces[1]])
    assert analysis.timeline.trace is traces[0]
    assert analysis.timeline.job is not None
    assert analysis.timeline.job.paths == tuple(f"rank{r}.pt.trace.json" for r in range(3))


def test_a_recording_that_was_cut_off_costs_the_others_nothing():
    whole = play_ranks(body, ranks=3, steps=3)
    cut = play_ranks(body, ranks=3, steps=2)[1]
    job = job_of([whole[0], cut, whole[2]])
    assert job.numbers == (0, 2) and len(job.step) == 6 and len(job.paths) == 3
    assert job.problems == ("not compared, as they do not have the same collectives: 1",)


def test_where_ranks_differ_the_kinds_and_steps_they_share_are_compared():
    more = play_ranks(body, ranks=2, steps=3)[0]
    fewer = play_ranks(body, ranks=2, steps=2)[1]
    job = job_of([more, fewer])
    assert job.numbers == (0, 1) and job.step.tolist() == [0, 0, 1, 1]


def test_ranks_that_are_missing_or_damaged_are_said():
    traces = play_ranks(body, ranks=3, steps=1)
    damaged = replace(traces[2], problems=(Problem("gzip-truncated", "it ends early"),))
    job = job_of([traces[0], "rank1.json: no trace", damaged])
    assert job.problems == (
        "rank1.json: no trace",
        "rank 2: it ends early",
        "of 3 ranks the job has 2; missing: 1",
    )


def test_a_claimed_number_of_ranks_is_not_counted_out():
    traces = [
        replace(trace, info=replace(trace.info, distributed=replace(trace.info.distributed, world_size=10**15)))
        for trace in play_ranks(body, ranks=3, steps=1)[1:]
    ]
    assert f"of {10**15} ranks the job has 2; missing: 0, 3-{10**15 - 1}" in job_of(traces).problems


def test_nothing_to_analyse_is_an_error_that_says_why():
    with pytest.raises(TraceError, match="a: gone; b: gone"):
        analyze_job(["a: gone", "b: gone"])


def test_one_rank_alone_is_a_job_without_comparison():
    job = job_of(play_ranks(body, ranks=2, steps=1)[:1])
    assert job.numbers == (0,) and job.problems == ("of 2 ranks the job has 1; missing: 1",)


def test_traces_without_communication_share_nothing():
    traces = []
    for rank in range(2):
        b = TraceBuilder()
        b.distributed = Distributed("nccl", rank, 2)
        with b.step(0):
            b.leaf("aten::mm", kernel="sgemm")
        traces.append(b.build())
    job = job_of(traces)
    assert len(job.step) == 0 and "share no collective" in job.problems[0]


def test_what_is_kept_of_a_rank_holds_no_column_of_its_trace():
    timeline = build_timeline(play_ranks(body, ranks=2, steps=1)[1])
    rank = rank_of(timeline)
    assert len(rank.row) == 2
    for column in (rank.row, rank.start_ns, rank.end_ns, rank.computing_ns, rank.loading_ns, rank.since_ns, rank.step):
        assert column.base is None, "a view would keep the whole column alive"
    assert align([rank], rank).numbers == (1,)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nccl:all_reduce", CollectiveKind.ALL_REDUCE),
        ("c10d::_allgather_base_", CollectiveKind.ALL_GATHER),
        ("c10d::reduce_scatter_tensor_coalesced_", CollectiveKind.REDUCE_SCATTER),
        (
            "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgs)",
            CollectiveKind.REDUCE_SCATTER,
        ),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", CollectiveKind.ALL_TO_ALL),
        ("c10d::alltoall_base_", CollectiveKind.ALL_TO_ALL),
        ("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", CollectiveKind.BROADCAST),
        ("gloo:reduce", CollectiveKind.REDUCE),
        ("c10d::barrier", CollectiveKind.BARRIER),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", CollectiveKind.OTHER),
        ("aten::mm", CollectiveKind.OTHER),
    ],
)
def test_kinds_by_name(name, kind):
    assert kind_of(name) == kind


def test_collectives_of_recorded_traces():
    found = find_collectives(
        build_timeline(read_trace(shared("traces", "S11_tracelens_resnet18_ddp_ckpt_mi300.json.gz")))
    )
    kinds = [CollectiveKind(kind).name for kind in found.kind]
    assert kinds == 3 * ["BROADCAST", "BROADCAST", "ALL_REDUCE", "ALL_REDUCE"], "told by the operator, not the kernel"
    assert found.elements[:4].tolist() == [9600, 20, 2873320, 8816192]
    assert set(found.group_size.tolist()) == {8}


def test_rank_7_of_the_recorded_job_comes_last():
    job = job_of([read_trace(path) for path in sorted(shared("traces", "S16_dlrm_8ranks_v100").glob("*.json.gz"))])
    assert job.numbers == tuple(range(8)) and NONE not in job.row
    assert job.arrival_ns[:, 0].argmax() == 7
    # Clocks of one machine: the first all-to-all takes what the rank waited for rank 7, which took 10 µs.
    assert (job.arrival_ns.max(axis=0) - job.arrival_ns)[1, 0] / 1000 == pytest.approx(7635 - 10, abs=10)
