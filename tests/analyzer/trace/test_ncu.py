"""Nsight Compute's CSV in its layouts, and files that are none."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtraceap.analyzer.trace.counters import CounterTable
from torchtraceap.analyzer.trace.limits import TraceError
from torchtraceap.analyzer.trace.ncu import parse_ncu, read_ncu

WHO = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name",'
    '"Context","Stream","Block Size","Grid Size","Device","CC"'
)
DETAILS = f'{WHO},"Section Name","Metric Name","Metric Unit","Metric Value"'
GEMM = "ampere_sgemm_128x64_nn(float*, const float*, int)"


def launch(number: int, kernel: str = GEMM) -> str:
    return f'"{number}","42","python3.11","127.0.0.1","{kernel}","1","7","(256, 1, 1)","(64, 1, 1)","0","8.0"'


def table(tmp_path: Path, *lines: str) -> CounterTable:
    path = tmp_path / "counters.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_ncu(path)


def column(found: CounterTable, metric: str) -> list[float]:
    return found.values[:, found.metrics.index(metric)].tolist()


def test_details_page_with_metrics_of_the_command_line(tmp_path: Path) -> None:
    section = '"Command line profiler metrics"'
    found = table(
        tmp_path,
        '==PROF== Profiling "ampere_sgemm_128x64_nn" - 0: 0%....50%....100% - 3 passes',
        "epoch 1, loss 0.25",
        DETAILS,
        f'{launch(0)},{section},"dram__bytes_read.sum","Mbyte","1,234.50"',
        f'{launch(0)},{section},"gpu__time_duration.sum","usecond","12.5"',
        f'{launch(0)},{section},"sm__inst_executed_pipe_tensor.sum","inst","0"',
        f'{launch(1)},{section},"dram__bytes_read.sum","Kbyte","4.00"',
        f'{launch(1)},{section},"gpu__time_duration.sum","us","2"',
        f'{launch(1)},{section},"sm__inst_executed_pipe_tensor.sum","","n/a"',
    )
    assert (found.source, found.kernels, len(found)) == ("ncu", (GEMM,), 2)
    assert column(found, "dram__bytes_read.sum") == [1234.5e6, 4e3]
    assert column(found, "gpu__time_duration.sum") == pytest.approx([12500, 2000])
    assert np.isnan(column(found, "sm__inst_executed_pipe_tensor.sum")).tolist() == [False, True]


def test_details_page_with_titles_takes_those_that_mean_one_metric(tmp_path: Path) -> None:
    found = table(
        tmp_path,
        DETAILS + ',"Rule Name","Rule Type","Rule Description"',
        f'{launch(0)},"GPU Speed Of Light Throughput","Memory Throughput","%","80.5","","",""',
        f'{launch(0)},"GPU Speed Of Light Throughput","Duration","ns","2,000","","",""',
        f'{launch(0)},"Memory Workload Analysis","Memory Throughput","Gbyte/s","1,200.00","","",""',
        f'{launch(0)},"Memory Workload Analysis","L2 Hit Rate","%","61.25","","",""',
        f'{launch(0)},"Memory Workload Analysis","","","","Bottleneck","WRN","Memory is ""busy"", they say"',
    )
    assert found.metrics == ("gpu__time_duration.sum", "dram__bytes.sum.per_second", "lts__t_sector_hit_rate.pct")
    assert found.values.tolist() == [pytest.approx([2000, 1.2e12, 61.25])]


def test_raw_page_has_its_units_in_a_line(tmp_path: Path) -> None:
    found = table(
        tmp_path,
        f'{WHO},"dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","launch__grid_size"',
        '"","","","","","","","","","","","Mbyte","byte","msecond",""',
        f'{launch(0)},"2.5","1,000","3.5","64"',
        f'{launch(1, "other<(int)4, float>(T1)")},"n/a","8192","0.5","64"',
        "==PROF== Disconnected from process 42",
    )
    assert found.kernels == (GEMM, "other<(int)4, float>(T1)")
    assert column(found, "dram__bytes_write.sum") == [1000, 8192]
    assert column(found, "gpu__time_duration.sum") == pytest.approx([3.5e6, 0.5e6])
    assert column(found, "dram__bytes_read.sum")[0] == 2.5e6
    assert np.isnan(column(found, "dram__bytes_read.sum")[1])


def test_raw_page_exported_from_the_window_has_units_in_its_header(tmp_path: Path) -> None:
    found = table(
        tmp_path,
        '"ID","Kernel Name","dram__bytes_read.sum [Mbyte]","lts__t_sector_hit_rate.pct [%]","sm__inst_executed.sum"',
        '"0","k","3.0","55.5","17"',
    )
    assert found.metrics == ("dram__bytes_read.sum", "lts__t_sector_hit_rate.pct", "sm__inst_executed.sum")
    assert found.values.tolist() == [[3e6, 55.5, 17]]


def test_summary_per_kernel_stands_for_all_its_launches(tmp_path: Path) -> None:
    found = table(
        tmp_path,
        '"Process ID","Kernel Name","Invocations","Metric Name","Metric Unit","Minimum","Maximum","Average"',
        '"1","k","3","dram__bytes_read.sum","Kbyte","10","30","20"',
    )
    assert found.values.tolist() == [[20e3]] * 3


def test_two_processes_may_number_their_launches_alike(tmp_path: Path) -> None:
    one = f'{launch(0)},"s","dram__bytes.sum","byte","1"'
    found = table(tmp_path, DETAILS, one, one.replace('"42"', '"43"'))
    assert len(found) == 2


def test_a_quote_left_open_costs_one_line(tmp_path: Path) -> None:
    good = f'{launch(1)},"s","dram__bytes.sum","byte","7"'
    found = table(tmp_path, DETAILS, '"0","42","python3,never closed', good)
    assert found.values.tolist() == [[7.0]]


@pytest.mark.parametrize(
    "text", ["", "hello\n", '"ID","Kernel Name"\n', '"Kernel Name","Metric Name"\n"k","dram__bytes.sum"\n', "\0" * 100]
)
def test_no_table_is_said_in_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "counters.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TraceError, match="no counters of kernels"):
        read_ncu(path)


def test_a_report_that_is_no_csv_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.ncu-rep"
    path.write_bytes(b"NVR\0" + bytes(range(256)) * 20)
    with pytest.raises(TraceError, match=r"ncu --csv"):
        read_ncu(path)


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TraceError, match="not a regular file"):
        read_ncu(pipe)
    with pytest.raises(TraceError, match="No such file"):
        read_ncu(tmp_path / "gone.csv")


@given(st.lists(st.text(alphabet='",abc1.\x00\x85 é[]%', max_size=60), max_size=12))
def test_any_lines_are_survived(lines: list[str]) -> None:
    header = [DETAILS, '"Kernel Name","a__b [Mbyte]"']
    for first in header:
        for one in parse_ncu([first, *lines]):
            assert all(np.isfinite(value) for value in one.metrics.values())
