"""Counters while recording: what runs without a GPU, which is the reading, the reasons and the sampling thread."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torchtraceap.analyzer.trace.recording import DEVICE, Recording
from torchtraceap.codemap.record import extras
from torchtraceap.codemap.record.counters import CountersExtra, counters_in, missing_permission, unavailable
from torchtraceap.codemap.record.extras import ExtraContext
from torchtraceap.codemap.record.ncu import NcuExtra
from torchtraceap.codemap.record.nvml import NvmlExtra, Samples, sample
from torchtraceap.codemap.record.options import RecordOptions

CONTEXT = ExtraContext({}, {})
RESTRICTED = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n"


def status(capabilities: int) -> str:
    return f"Name:\tpython\nUid:\t1000\t1000\nCapEff:\t{capabilities:016x}\n"


@pytest.mark.parametrize(
    ("parameters", "process", "missing"),
    [
        (RESTRICTED, status(0), True),
        (RESTRICTED, status(1 << 21), False),
        (RESTRICTED, status(1 << 38), False),
        (RESTRICTED.replace(": 1", ": 0"), status(0), False),
        ("", "", False),
        (RESTRICTED, "CapEff: nonsense", True),
    ],
)
def test_the_permission_that_is_missing_is_named(parameters: str, process: str, missing: bool) -> None:
    said = missing_permission(parameters, process)
    assert ("ERR_NVGPUCTRPERM" in said and "NVreg_RestrictProfilingToAdminUsers=0" in said) is missing


def fake_torch(**cuda: Any) -> SimpleNamespace:
    available = SimpleNamespace(is_available=lambda: True, get_device_capability=lambda: (9, 0), **cuda)
    profiler = SimpleNamespace(_profiler=SimpleNamespace(_ExperimentalConfig=object))
    return SimpleNamespace(version=SimpleNamespace(hip=None), cuda=available, _C=profiler, __version__="2.9.0")


def test_why_there_are_none() -> None:
    assert unavailable(fake_torch()) == ""
    other = fake_torch()
    other.version.hip = "6.2"
    assert "NVIDIA" in unavailable(other)
    other = fake_torch()
    other.cuda.is_available = lambda: False
    assert "no CUDA device" in unavailable(other)
    other = fake_torch()
    other.cuda.get_device_capability = lambda: (6, 1)
    assert "6.1" in unavailable(other)
    other = fake_torch()
    other._C = SimpleNamespace()
    assert "2.9.0" in unavailable(other)


def test_without_a_device_the_recording_says_so_and_runs_on() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    extra, driver = CountersExtra(RecordOptions()), NvmlExtra(RecordOptions())
    for one in (extra, driver):
        one.start(CONTEXT)
        one.stop()
    recording = driver.finish(extra.finish(Recording(), Path()), Path())
    assert recording.notes == ("--counters: there is no CUDA device to read counters of",)
    assert recording.counters == {}


def test_the_range_profilers_trace_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    one = {"ph": "X", "cat": "cuda_profiler_range", "name": "gemm", "pid": 0, "tid": 0, "ts": 1, "dur": 1}
    path.write_text(json.dumps({"traceEvents": [{**one, "args": {"dram__bytes_read.sum": 5}}] * 2}), "utf-8")
    table, note = counters_in(path)
    assert (len(table), note) == (2, "")
    path.write_text(json.dumps({"traceEvents": [{**one, "cat": "kernel"}]}), "utf-8")
    table, note = counters_in(path)
    assert len(table) == 0
    assert "--ncu" in note or "ERR_NVGPUCTRPERM" in note
    path.write_text("", "utf-8")
    assert "cannot be read" in counters_in(path)[1]


def test_a_file_of_nsight_computes_goes_beside_the_trace(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text('"ID","Kernel Name","dram__bytes_read.sum"\n"","","Kbyte"\n"0","gemm","3"\n', "utf-8")
    (make,) = extras.wanted(RecordOptions(ncu=str(path)))
    extra = make()
    assert isinstance(extra, NcuExtra)
    extra.start(CONTEXT)
    extra.on_full_step(0)
    extra.stop()
    launches = extra.finish(Recording(), tmp_path / "trace.json").launches
    assert (launches.kernels, launches.kernel, launches.values) == (("gemm",), (0,), ((3000.0,),))


def test_what_is_asked_for_is_made() -> None:
    assert [make().title for make in extras.wanted(RecordOptions(counters=True))] == [
        "--counters (driver)",
        "--counters",
    ]
    assert list(extras.wanted(RecordOptions())) == []


class FakeNvml:
    """NVIDIA's library, as far as it is asked; power is not told by this device."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.busy = 0

    def nvmlInit(self) -> None:
        self.asked.append("init")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if not uuid.startswith("GPU-"):
            raise self.NVMLError("Not Found")
        return uuid

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> SimpleNamespace:
        self.busy += 1
        return SimpleNamespace(gpu=self.busy, memory=5)

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> SimpleNamespace:
        return SimpleNamespace(used=2 << 30)

    def nvmlDeviceGetClockInfo(self, handle: object, kind: int) -> int:
        return 1000 * kind

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:
        raise self.NVMLError("Not Supported")


def test_samples_are_summed_up() -> None:
    nvml, samples = FakeNvml(), Samples()
    for _ in range(3):
        sample(nvml, 0, samples)
    found = samples.summary()
    assert (found["gpu_busy_pct_mean"], found["gpu_busy_pct_max"]) == (3.0, 5.0)
    assert found["memory_used_bytes_max"] == 2 << 30
    assert (found["sm_clock_mhz_mean"], found["memory_clock_mhz_mean"], found["samples"]) == (1000, 2000, 3)
    assert "power_w_mean" not in found


def test_a_thread_samples_until_the_steps_are_over() -> None:
    nvml, extra = FakeNvml(), NvmlExtra(RecordOptions())
    extra.begin(nvml, "GPU-1", 0)
    deadline = time.monotonic() + 5
    while nvml.busy < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    extra.stop()
    asked = nvml.busy
    recording = extra.finish(Recording(), Path())
    assert recording.counters[DEVICE]["samples"] >= 1
    assert recording.notes == ()
    time.sleep(0.12)
    assert nvml.busy == asked, "the thread is gone"


def test_a_driver_that_does_not_answer_is_a_note() -> None:
    extra = NvmlExtra(RecordOptions())
    extra.begin(FakeNvml(), "MIG-1", 0)
    extra.stop()
    recording = extra.finish(Recording(), Path())
    assert recording.counters == {}
    assert recording.notes == ("--counters: the driver does not answer: Not Found",)
