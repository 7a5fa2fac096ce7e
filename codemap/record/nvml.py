"""`--counters`: what the driver says of the device while steps run: how busy, how hot, how fast, how full.

Sampled by a thread, with no profiler at work, through NVIDIA's management library (`pip install nvidia-ml-py`), which
needs no permission. A sample of the utilisation is the driver's own mean over its last sampling period, 1/6 to 1 s, so
short recordings give few independent ones. Imported in the recorded process only.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ...analyzer.trace.recording import DEVICE, Recording
from .extras import ExtraContext
from .options import RecordOptions

PERIOD_S = 0.05
_JOIN_S = 2.0


@dataclass(slots=True)
class Samples:
    """Figures by name, in the order of sampling."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """Append a sample."""
        self.values.setdefault(name, []).append(value)

    def summary(self) -> dict[str, float]:
        """Means and largest values, rounded: `gpu_busy_pct_mean`, `gpu_busy_pct_max`, ..., and how many samples."""
        found: dict[str, float] = {}
        for name, values in self.values.items():
            found[f"{name}_mean"] = round(sum(values) / len(values), 3)
            found[f"{name}_max"] = round(max(values), 3)
        if found:
            found["samples"] = float(max(len(values) for values in self.values.values()))
        return found


def sample(nvml: Any, handle: Any, samples: Samples) -> None:
    """One sample of everything that the device tells. What it does not tell is left out."""
    questions: tuple[tuple[str, Callable[[], float]], ...] = (
        ("gpu_busy_pct", lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        ("memory_busy_pct", lambda: nvml.nvmlDeviceGetUtilizationRates(handle).memory),
        ("memory_used_bytes", lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used),
        ("sm_clock_mhz", lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        ("memory_clock_mhz", lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        ("power_w", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
    )
    for name, ask in questions:
        try:
            samples.add(name, float(ask()))
        except nvml.NVMLError:
            continue


class NvmlExtra:
    """Some steps during which a thread asks the driver."""

    title = "--counters (driver)"
    own_steps = 6

    def __init__(self, options: RecordOptions) -> None:
        self._samples = Samples()
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._note = ""

    def start(self, context: ExtraContext) -> None:
        """Begin to sample the device that is in use."""
        import torch

        if torch.version.hip or not torch.cuda.is_available():
            return  # the range profiler's note says so
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            self._note = "the driver was not asked how busy the GPU is: `pip install nvidia-ml-py`"
            return
        self.begin(nvml, _uuid(torch), torch.cuda.current_device())

    def begin(self, nvml: Any, uuid: str, index: int) -> None:
        """Sample the device with this UUID (else number `index`) until `stop`."""
        try:
            nvml.nvmlInit()
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid) if uuid else nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            self._note = f"the driver does not answer: {error}"
            return
        self._thread = threading.Thread(target=self._run, args=(nvml, handle), name="torchtraceap-nvml", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)
            self._thread = None

    def on_full_step(self, index: int) -> None:
        """Nothing is left to do."""

    def finish(self, recording: Recording, trace: Path) -> Recording:
        """Add the figures, or why there are none."""
        notes = (*recording.notes, *([f"--counters: {self._note}"] if self._note else []))
        figures = self._samples.summary()
        counters = {**recording.counters, DEVICE: figures} if figures else recording.counters
        return msgspec.structs.replace(recording, counters=counters, notes=notes)

    def _run(self, nvml: Any, handle: Any) -> None:
        try:
            while True:
                sample(nvml, handle, self._samples)
                if self._over.wait(PERIOD_S):
                    return
        except Exception as error:  # noqa: BLE001 - the thread runs beside the program, which must not hear of it
            self._note = f"asking the driver failed: {type(error).__name__}: {error}"


def _uuid(torch: Any) -> str:
    """Of the current device, as the driver writes it; "" if this torch does not tell."""
    uuid = str(getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", ""))
    return uuid if not uuid or uuid.startswith("GPU-") else f"GPU-{uuid}"
