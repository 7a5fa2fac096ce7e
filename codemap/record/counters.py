"""`--counters`: hardware counters of every kernel of one step, by CUPTI's range profiler through torch.profiler.

Kineto can run CUPTI in its range mode, where each kernel is a range of its own and is replayed until all metrics are
read; such a step is many times slower and its trace has no kernel events, so it is one of its own, whose ranges go into
the file beside the trace. It needs a build of Kineto with the range profiler, and the driver's permission.
Imported in the recorded process only.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec

from ...analyzer.trace.counters import NO_COUNTERS, CounterTable, for_recording
from ...analyzer.trace.limits import TraceError
from ...analyzer.trace.read import read_trace
from ...analyzer.trace.recording import Recording
from .extras import ExtraContext
from .noise import quiet
from .options import RecordOptions

METRICS = (
    "kineto__tensor_core_insts",  # sm__inst_executed_pipe_tensor.sum
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sector_hit_rate.pct",
)
"""What is asked for, by CUPTI's names; the first is Kineto's for a set of them."""
FEWER_METRICS = ("kineto__tensor_core_insts", "dram__bytes_read.sum", "dram__bytes_write.sum")
"""Those that every device with tensor cores has; one unknown metric costs all of them."""
OLDEST_CAPABILITY = (7, 0)

DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
PROCESS_STATUS = Path("/proc/self/status")
_MAY_PROFILE = (21, 38)
"""Bits of CAP_SYS_ADMIN and CAP_PERFMON."""


class CountersExtra:
    """One step under the range profiler."""

    title = "--counters"
    own_steps = 1

    def __init__(self, options: RecordOptions) -> None:
        self._profiler: Any = None
        self._table: CounterTable = NO_COUNTERS
        self._note = ""

    def start(self, context: ExtraContext) -> None:
        """Start the range profiler, if this machine can have one."""
        import torch

        self._note = unavailable(torch)
        if self._note:
            return
        from torch._C._profiler import _ExperimentalConfig
        from torch.profiler import ProfilerActivity, profile

        known = torch.cuda.get_device_capability() >= (8, 0)
        config = _ExperimentalConfig(
            profiler_metrics=list(METRICS if known else FEWER_METRICS), profiler_measure_per_kernel=True
        )
        activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        torch.cuda.synchronize()
        with quiet():
            self._profiler = profile(activities=activities, experimental_config=config)
            self._profiler.start()

    def stop(self) -> None:
        """Stop it and read what it has measured."""
        if self._profiler is None:
            return
        import torch

        torch.cuda.synchronize()
        profiler, self._profiler = self._profiler, None
        with quiet():
            profiler.stop()
        with tempfile.TemporaryDirectory(prefix="torchtraceap-") as folder:
            path = Path(folder, "counters.json")
            profiler.export_chrome_trace(str(path))
            self._table, self._note = counters_in(path)

    def on_full_step(self, index: int) -> None:
        """Nothing is left to do."""

    def finish(self, recording: Recording, trace: Path) -> Recording:
        """Add the counters, or why there are none."""
        notes = (*recording.notes, *([f"--counters: {self._note}"] if self._note else []))
        launches = for_recording(self._table) if len(self._table) else recording.launches
        return msgspec.structs.replace(recording, launches=launches, notes=notes)


def counters_in(path: Path) -> tuple[CounterTable, str]:
    """The counters in a trace that the range profiler wrote, and what to say if there are none."""
    try:
        table = read_trace(path).counters
    except TraceError as error:
        return NO_COUNTERS, f"the range profiler's trace cannot be read: {error}"
    if len(table):
        return table, ""
    reason = missing_permission(_text(DRIVER_PARAMETERS), _text(PROCESS_STATUS))
    return NO_COUNTERS, reason or (
        "the range profiler gave no counters: this build of PyTorch is without it, or another tool (DCGM, Nsight) "
        "holds them; a run under `ncu --csv` and the option --ncu give the same"
    )


def unavailable(torch: Any) -> str:
    """Why the range profiler cannot be had; "" if it may be."""
    if torch.version.hip:
        return "hardware counters are read on NVIDIA devices only"
    if not torch.cuda.is_available():
        return "there is no CUDA device to read counters of"
    capability = torch.cuda.get_device_capability()
    if capability < OLDEST_CAPABILITY:
        return f"devices of compute capability {capability[0]}.{capability[1]} are too old for the range profiler"
    if not hasattr(torch._C, "_profiler") or not hasattr(torch._C._profiler, "_ExperimentalConfig"):
        return f"torch {torch.__version__} has no experimental profiler settings"
    return ""


def missing_permission(driver_parameters: str, process_status: str) -> str:
    """What to grant so that counters may be read, from the texts of `DRIVER_PARAMETERS` and `PROCESS_STATUS`; "" if
    the driver restricts nothing or the process may.

    NVIDIA, "ERR_NVGPUCTRPERM: Permission issue with Performance Counters".
    """
    restricted = _field(driver_parameters, "RmProfilingAdminOnly") == "1"
    try:
        capabilities = int(_field(process_status, "CapEff") or "0", 16)
    except ValueError:
        capabilities = 0
    if not restricted or any(capabilities >> bit & 1 for bit in _MAY_PROFILE):
        return ""
    return (
        "the driver lets only administrators read GPU counters (ERR_NVGPUCTRPERM): run as root, start the container "
        "with --cap-add=SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"
    )


def _field(text: str, name: str) -> str:
    """The value in a line `name: value`."""
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
