"""Collectives as `c10d` launches them, on a stream of their own."""

from __future__ import annotations

from . import names
from .clock import Clock
from .document import Args
from .hardware import Hardware
from .kernels import Kernel, Queue

_LATE_US = 30.0
"""By how much the slowest rank is behind, on average."""


def collective(clock: Clock, kind: str, size_bytes: int, ranks: int) -> float:
    """A collective on its own stream, as `c10d` launches it; answers when it ends.

    It begins when the compute stream has done what it was given, and the slowest rank has come.
    """
    elements = size_bytes // 4
    identity = clock.new_id()
    described = Args(
        external_id=identity,
        record_function=0,
        collective=kind,
        elements_in=elements,
        elements_out=elements,
        group_size=ranks,
        group_name="0",
        dtype="Float",
    )
    word = {"allreduce": "all_reduce"}.get(kind, kind)
    around = clock.synthetic(f"nccl:{word}", "user_annotation")
    outer = clock.synthetic(f"c10d::{kind}_")
    clock.spend(6.0)
    inner = clock.synthetic("record_param_comms")
    inner.args = described
    clock.spend(5.0)
    clock.runtime(clock.call_name("EventRecord"), 0.9)
    clock.runtime(clock.call_name("StreamWaitEvent"), 0.9)
    late_us = clock.rng.expovariate(1 / _LATE_US)
    clock.device.hold(Queue.COMMUNICATION, clock.device.free_at(Queue.COMPUTE) + late_us)
    kernel = _kernel(clock.hardware, kind, size_bytes, ranks)
    _, end = clock.launch(kernel, Queue.COMMUNICATION, identity, described)
    clock.runtime(clock.call_name("EventRecord"), 0.9)
    for event in (inner, outer, around):
        clock.close(event)
    return end


def _kernel(hardware: Hardware, kind: str, size_bytes: int, ranks: int) -> Kernel:
    """A ring's kernel: latency by ranks, then bus bandwidth, of which small messages get less."""
    share = 2.0 * (ranks - 1) / ranks if kind == "allreduce" else 1.0
    moving_us = share * size_bytes / (hardware.link_gb_per_s * 1e3) * (1.0 + 1.5 / (1.0 + size_bytes / 4e6))
    name = names.all_reduce(hardware, "float") if kind == "allreduce" else names.broadcast(hardware)
    call = "hipExtLaunchKernel" if hardware.is_amd else "cudaLaunchKernelExC"
    blocks = min(24, 2 + size_bytes // 1_000_000)
    return Kernel(name, 14.0 + 2.2 * ranks + moving_us, (blocks, 1, 1), (544, 1, 1), 96, 82240, call=call)
