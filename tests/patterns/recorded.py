"""Traces for rules' scenes, really recorded on the CPU.

    def positive_recorded() -> Trace:
        torch = pytest.importorskip("torch")
        images = torch.rand(8, 3, 32, 32)

        def step() -> None:
            for image in images:
                ...

        return record(step)

The step's own work belongs in `step`; what it needs is made before, outside. It should take milliseconds: every test
that asks for the scene records it anew.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from torchtraceap.analyzer.trace.model import Trace
from torchtraceap.analyzer.trace.read import read_trace

_WARM_UPS = 2


def record(
    step: Callable[[], object],
    *,
    steps: int = 4,
    with_stack: bool = True,
    record_shapes: bool = True,
    profile_memory: bool = False,
) -> Trace:
    """The trace of `steps` runs of `step`, each a `ProfilerStep#N`, on one thread and after a few runs unrecorded.

    Skips the test where torch is not installed. The caller's file stands in the trace as any program's does, and so do
    the frames of whatever called it.
    """
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile, schedule

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _ in range(_WARM_UPS):
            step()
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=0, warmup=1, active=steps, repeat=1),
            with_stack=with_stack,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
        ) as profiler:
            for _ in range(steps + 1):
                step()
                profiler.step()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "recorded.pt.trace.json"
            profiler.export_chrome_trace(str(path))
            return read_trace(path)
    finally:
        torch.set_num_threads(threads)
