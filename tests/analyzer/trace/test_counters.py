"""Hardware counters in a trace and beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.shared import shared_timeline
from torchtraceap.analyzer.trace import counters
from torchtraceap.analyzer.trace.counters import for_recording, from_recording
from torchtraceap.analyzer.trace.recording import LaunchCounters, Recording, write_recording

from .documents import event, read_events, read_text

READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"


def ranged(name: str, ts: float, **metrics: Any) -> dict[str, Any]:
    return event(name, ts=ts, cat="cuda_profiler_range", pid=0, tid=0, args=metrics)


def test_ranges_become_a_table(tmp_path: Path) -> None:
    trace = read_events(
        tmp_path,
        [
            event("aten::mm"),
            ranged("gemm", 20, **{READ: 100, WRITTEN: 7.5, "device": 0}),
            event("aten::add", ts=30),
            ranged("add", 40, **{READ: 50, "broken__metric": "n/a"}),
            ranged("gemm", 50, **{READ: 300}),
        ],
    )
    table = trace.counters
    assert (table.source, table.kernels, table.metrics) == ("trace", ("gemm", "add"), (READ, WRITTEN))
    assert table.kernel.tolist() == [0, 1, 0]
    assert table.position.tolist() == [1, 3, 4]
    assert table.values[:, 0].tolist() == [100, 50, 300]
    assert np.isnan(table.values[1:, 1]).all()


def test_ranges_are_found_in_every_batch_of_a_long_document(tmp_path: Path) -> None:
    events = [event(f"op{i % 7}", ts=i) if i % 50 else ranged("k", i, **{READ: i}) for i in range(20_000)]
    trace = read_events(tmp_path, events)
    assert trace.counters.position.tolist() == list(range(0, 20_000, 50))
    assert trace.counters.values[:, 0].tolist() == list(range(0, 20_000, 50))


def test_odd_ranges_are_survived(tmp_path: Path) -> None:
    text = json.dumps([event(), ranged("k", 1, **{READ: 1})])
    odd = [
        '{"ph":"X","cat":"cuda_profiler_range","name":null,"ts":5,"dur":1,"args":[1]}',
        '{"ph":"X","cat":"cuda_profiler_range","name":"n","ts":6,"dur":1}',
        '{"ph":"i","cat":"cuda_profiler_range","name":"n","ts":6}',
    ]
    assert len(read_text(tmp_path, text[:-1] + "," + ",".join(odd) + "]").counters) == 3
    assert not len(read_text(tmp_path, "[" + ",".join(odd) + "]").counters)


def test_a_trace_without_ranges_has_those_of_its_recording(tmp_path: Path) -> None:
    launches = LaunchCounters(("gemm", "add"), (0, 1, 0), (READ, WRITTEN), ((1.0, 2.0, 3.0), (4.0, None, 6.0)))
    write_recording(tmp_path / "trace.json", Recording(launches=launches))
    table = read_events(tmp_path, [event()]).counters
    assert (table.source, table.kernels) == ("recording", ("gemm", "add"))
    assert table.values[0].tolist() == [1.0, 4.0]
    assert np.isnan(table.values[1, 1])
    assert for_recording(table) == launches


def test_columns_that_do_not_fit_count_as_none() -> None:
    for wrong in (
        LaunchCounters(("k",), (0,), (READ,), ()),
        LaunchCounters(("k",), (0,), (READ,), ((1.0, 2.0),)),
        LaunchCounters(("k",), (1,), (READ,), ((1.0,),)),
        LaunchCounters(("k",), (-1,), (READ,), ((1.0,),)),
        LaunchCounters(("k",), (), (), ()),
    ):
        assert not len(from_recording(wrong))
        assert msgspec.json.decode(msgspec.json.encode(wrong), type=LaunchCounters) == wrong


def test_more_kernels_than_any_program_has_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "MOST_KERNELS", 3)
    table = counters.to_table("ncu", [counters.Measured(f"k{i % 5}", {READ: float(i)}) for i in range(10)])
    assert table.kernels == ("k0", "k1", "k2")
    assert table.values[:, 0].tolist() == [0, 1, 2, 5, 6, 7]


def test_a_real_trace_has_a_range_for_every_launch() -> None:
    trace = shared_timeline("traces/S18_hta_cupti_counters_alexnet.json.gz").trace
    assert (len(trace.counters), len(trace.counters.metrics)) == (77, 9)
    assert trace.counters.kernels.count("ampere_sgemm_32x32_sliced1x4_tn") == 1


def test_sampled_utilisation_is_no_counter_of_a_kernel() -> None:
    assert not len(shared_timeline("traces/S19_kineto_gpu_counters_C.json").trace.counters)
