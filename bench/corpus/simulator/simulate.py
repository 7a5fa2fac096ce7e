"""From a recording on the CPU to the trace that a device would have given."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw, UnsetType

from torchtraceap.analyzer.trace.model import Dims

from .calls import build
from .clock import ClockParts, Pace
from .device import Device, Memory
from .document import Args, Document, Event, parse, serialize
from .hardware import Hardware, hardware_of
from .operators import Planner
from .program import Program
from .roofline import Roofline
from .settings import JobSettings
from .shapes import Calls, parameter_shapes

if TYPE_CHECKING:
    from ..job import Job

_START_US = 1000.0
"""Simulated times count from the recording's beginning: nanoseconds in a number of ten thousand seconds are inexact."""
_BACKWARD_THREAD = 97
"""Added to the main thread's id."""


def simulate(document: bytes, device: str, job: JobSettings | Job, seed: int) -> bytes:
    """The Kineto document that a device would have given for a recorded run.

    `document`: the profiler's JSON of a run on the CPU, with shapes, stacks and memory. `device`: see
    `hardware.DEVICES`. The same arguments give the same bytes. Raises `ValueError` for an unknown device and for a
    recording without host events, and `msgspec.DecodeError` for text that is no trace.
    """
    hardware = hardware_of(device)
    recorded = parse(document)
    settings = job if isinstance(job, JobSettings) else JobSettings.of(job)
    with _no_collection():
        simulated = simulate_events(recorded.events, hardware, settings, seed)
        return serialize(document_of(recorded, simulated, hardware, settings))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without garbage collection, which finds nothing here and takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def simulate_events(
    recorded: Sequence[Event], hardware: Hardware, job: JobSettings, seed: int, pace: Pace | None = None
) -> list[Event]:
    """The events of the simulated run, on a host of that pace; None: some host."""
    rng = random.Random(seed)
    parameters = parameter_shapes(recorded)
    half = "" if hardware.device.has_bf16 else "c10::Half"
    times = job.batch_multiplier * (hardware.usual_batch if job.batch_multiplier > 1 else 1)
    calls = Calls(job.batch_size, times, parameters, half)
    root = build(recorded)
    elements = _parameter_elements(parameters)
    events: list[Event] = []
    device = Device(hardware, events)
    host = Program(
        Planner(hardware, Roofline(hardware, rng), job, elements),
        calls,
        Memory(hardware, 4 * elements * 3),
        ClockParts(hardware, device, events, rng, pace or Pace.draw(rng)),
        ranks=max(job.ranks, 2),
    )
    assert isinstance(root.event.tid, (int, str)) and isinstance(root.event.pid, (int, str))
    host.clock, host.pid, host.tid = _START_US, root.event.pid, root.event.tid
    host.backward_tid = root.event.tid + _BACKWARD_THREAD if isinstance(root.event.tid, int) else "backward"
    host.inside(root)
    _add_device_ranges(events, device, host)
    _move_flows(recorded, events, host)
    _add_metadata(events, hardware, device, host)
    return events


def _parameter_elements(parameters: frozenset[Dims]) -> int:
    """About how many parameters the model has: each shape and its transpose count once, and stand for some tensors."""
    return 2 * sum(prod(sizes) for sizes in parameters)


def _add_device_ranges(events: list[Event], device: Device, host: Program) -> None:
    """Annotations as the device saw them: from the first to the last work launched inside."""
    for one in host.finished_ranges:
        if one.end <= 0.0 or isinstance(one.event.args, UnsetType):
            continue
        args = Args(external_id=one.event.args.external_id)
        stream = device.streams[0]
        events.append(
            Event(
                "X",
                one.event.name,
                "gpu_user_annotation",
                device.pid,
                stream,
                round(one.begin, 3),
                round(one.end - one.begin, 3),
                args=args,
            )
        )


def _move_flows(recorded: Sequence[Event], events: list[Event], host: Program) -> None:
    """Arrows from forward to backward operators, where both ends are still there."""
    ends: dict[int, list[Event]] = {}
    for event in recorded:
        if event.cat != "fwdbwd" or isinstance(event.id, UnsetType) or isinstance(event.ts, UnsetType):
            continue
        moved = host.starts.get(event.ts)
        if moved is not None:
            flow = Event(event.ph, "fwdbwd", "fwdbwd", host.pid, moved[1], moved[0], id=event.id, bp=event.bp)
            ends.setdefault(event.id, []).append(flow)
    for pair in ends.values():
        if len(pair) == 2:
            events.extend(pair)


def _add_metadata(events: list[Event], hardware: Hardware, device: Device, host: Program) -> None:
    first = min(event.ts for event in events if not isinstance(event.ts, UnsetType))

    def say(what: str, pid: int | str, tid: int | str, **args: str | int) -> None:
        events.append(Event("M", what, UNSET, pid, tid, first, args=Args(**args)))  # type: ignore[arg-type]

    say("process_name", host.pid, 0, name="python3")
    say("process_labels", host.pid, 0, labels="CPU")
    say("process_sort_index", host.pid, 0, sort_index=5_000_000)
    for tid in (host.tid, host.backward_tid):
        say("thread_name", host.pid, tid, name=f"thread {tid} (python3)")
        say("thread_sort_index", host.pid, tid, sort_index=tid if isinstance(tid, int) else 0)
    say("process_name", device.pid, 0, name="python3")
    say("process_labels", device.pid, 0, labels=f"GPU {device.pid}")
    for stream in device.streams:
        say("thread_name", device.pid, stream, name=f"stream {stream} ")
    last = max(event.ts + (event.dur or 0) for event in events if event.ph == "X")  # type: ignore[operator]
    span = Event("X", "PyTorch Profiler (0)", "Trace", "Spans", "PyTorch Profiler", first, round(last - first, 3))
    events.append(span)


def document_of(recorded: Document, events: list[Event], hardware: Hardware, job: JobSettings) -> Document:
    """The events with what a document says besides: the device, versions, ranks, what was recorded."""
    device = hardware.device
    properties = {
        "id": 0,
        "name": hardware.name,
        "totalGlobalMem": hardware.memory_bytes,
        "computeMajor": device.capability[0],
        "computeMinor": device.capability[1],
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": hardware.threads,
        "regsPerBlock": 65536,
        "warpSize": hardware.warp,
        "sharedMemPerBlock": 65536 if hardware.is_amd else 49152,
        "numSms": hardware.units,
    }
    document = Document(
        events,
        deviceProperties=Raw(msgspec.json.encode([properties])),
        record_shapes=recorded.record_shapes,
        profile_memory=recorded.profile_memory,
        with_stack=recorded.with_stack,
        trace_id=recorded.trace_id,
        displayTimeUnit="ms",
        base_ns=recorded.base_ns,
        traceName=recorded.traceName,
    )
    if hardware.is_amd:
        document.hip_runtime_version = document.hip_driver_version = 60443483
    else:
        document.cuda_runtime_version, document.cuda_driver_version = 12080, 12080
    if job.ranks > 1:
        group = {
            "pg_name": "0",
            "pg_desc": "default_pg",
            "backend_config": "cuda:nccl",
            "pg_size": job.ranks,
            "ranks": list(range(job.ranks)),
        }
        information = {"backend": "nccl", "rank": 0, "world_size": job.ranks, "pg_count": 1, "pg_config": [group]}
        document.distributedInfo = Raw(msgspec.json.encode(information))
    return document
