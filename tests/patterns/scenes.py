"""Common parts of the traces that rules are tested on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from torchtraceap.analyzer.trace.model import DeviceProperties, Trace
from torchtraceap.analyzer.trace.recording import Precision, Recording

from ..builders import A100, V100, TraceBuilder

__all__ = ["A100", "V100", "TraceBuilder", "layer", "noted", "on_cpu", "on_device"]

MAIN = "train.py(40): main"


def on_device(
    body: Callable[[TraceBuilder], None],
    *,
    steps: int = 4,
    device: DeviceProperties = A100,
    frames: Sequence[str] = (MAIN,),
    launch_us: float = 5,
) -> Trace:
    """`steps` profiler steps on a GPU, each playing `body` inside `frames`; the host waits at the end of each."""

    def step(b: TraceBuilder) -> None:
        body(b)
        b.synchronize()

    return _play(TraceBuilder(devices=(device,), launch_us=launch_us), step, steps, frames)


def on_cpu(body: Callable[[TraceBuilder], None], *, steps: int = 4, frames: Sequence[str] = (MAIN,)) -> Trace:
    """`steps` profiler steps without any device."""
    return _play(TraceBuilder(devices=()), body, steps, frames)


def noted(trace: Trace, **switches: bool | str) -> Trace:
    """The trace as of a recording run that noted these fields of `Precision`."""
    return replace(trace, recording=Recording(precision=Precision(**switches)))  # pyright: ignore[reportArgumentType]


def layer(b: TraceBuilder, name: str, kernel: str, *, us: float = 20, kernel_us: float = 100, **inputs: object) -> None:
    """One operator that launches one kernel."""
    b.leaf(name, us=us, kernel=kernel, kernel_us=kernel_us, **inputs)


def _play(b: TraceBuilder, body: Callable[[TraceBuilder], None], steps: int, frames: Sequence[str]) -> Trace:
    with ExitStack() as stack:
        for frame in frames:
            stack.enter_context(b.frame(frame))
        for number in range(steps):
            with b.step(number, us=20):
                body(b)
    return b.build()
