"""Kineto documents as typed events: what the simulator reads, and what it writes."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

Number = int | float | UnsetType
Text = str | UnsetType
Json = msgspec.Raw | UnsetType


class Args(
    msgspec.Struct,
    gc=False,
    omit_defaults=True,
    rename={
        "external_id": "External id",
        "record_function": "Record function id",
        "sequence": "Sequence number",
        "forward_thread": "Fwd thread id",
        "concrete": "Concrete Inputs",
        "types": "Input type",
        "strides": "Input Strides",
        "dims": "Input Dims",
        "python_id": "Python id",
        "python_parent": "Python parent id",
        "python_module": "Python module id",
        "total_reserved": "Total Reserved",
        "total_allocated": "Total Allocated",
        "memory_bytes": "Bytes",
        "address": "Addr",
        "device_id": "Device Id",
        "device_type": "Device Type",
        "event_index": "Ev Idx",
        "registers": "registers per thread",
        "shared_memory": "shared memory",
        "blocks_per_sm": "blocks per SM",
        "warps_per_sm": "warps per SM",
        "occupancy": "est. achieved occupancy %",
        "bandwidth": "memory bandwidth (GB/s)",
        "collective": "Collective name",
        "elements_in": "In msg nelems",
        "elements_out": "Out msg nelems",
        "group_size": "Group size",
        "group_name": "Process Group Name",
    },
):
    """The `args` of an event. `Raw` fields are JSON text that is passed on unread where nothing changes."""

    external_id: int | UnsetType = UNSET
    record_function: int | UnsetType = UNSET
    sequence: int | UnsetType = UNSET
    forward_thread: int | UnsetType = UNSET
    concrete: Json = UNSET
    types: Json = UNSET
    strides: Json = UNSET
    dims: Json = UNSET
    python_id: int | UnsetType = UNSET
    python_parent: int | UnsetType | None = UNSET
    python_module: int | UnsetType = UNSET
    total_reserved: int | UnsetType = UNSET
    total_allocated: int | UnsetType = UNSET
    memory_bytes: int | UnsetType = UNSET
    address: int | UnsetType = UNSET
    device_id: int | UnsetType = UNSET
    device_type: int | UnsetType = UNSET
    event_index: int | UnsetType = UNSET
    collective: Text = UNSET
    elements_in: int | UnsetType = UNSET
    elements_out: int | UnsetType = UNSET
    group_size: int | UnsetType = UNSET
    group_name: str | int | UnsetType = UNSET
    dtype: Text = UNSET
    kind: Text = UNSET
    device: int | str | UnsetType = UNSET
    context: int | UnsetType = UNSET
    stream: int | str | UnsetType = UNSET
    queued: int | UnsetType = UNSET
    correlation: int | UnsetType = UNSET
    cbid: int | UnsetType = UNSET
    cid: int | UnsetType = UNSET
    registers: int | UnsetType = UNSET
    shared_memory: int | UnsetType = UNSET
    blocks_per_sm: float | UnsetType = UNSET
    warps_per_sm: float | UnsetType = UNSET
    grid: tuple[int, int, int] | UnsetType = UNSET
    block: tuple[int, int, int] | UnsetType = UNSET
    occupancy: float | UnsetType = UNSET
    bytes: int | str | UnsetType = UNSET
    bandwidth: float | str | UnsetType = UNSET
    name: Text = UNSET
    labels: Text = UNSET
    sort_index: int | UnsetType = UNSET


class Event(msgspec.Struct, gc=False, omit_defaults=True):
    """One entry of `traceEvents`. Times in µs, as in the file."""

    ph: str
    name: str = ""
    cat: Text = UNSET
    pid: int | str | UnsetType = UNSET
    tid: int | str | UnsetType = UNSET
    ts: Number = UNSET
    dur: Number = UNSET
    id: int | UnsetType = UNSET
    s: Text = UNSET
    bp: Text = UNSET
    args: Args | UnsetType = UNSET


class Document(msgspec.Struct, omit_defaults=True, rename={"events": "traceEvents", "base_ns": "baseTimeNanoseconds"}):
    """A trace file."""

    events: list[Event]
    schemaVersion: int = 1
    deviceProperties: Json = UNSET
    distributedInfo: Json = UNSET
    cuda_runtime_version: int | UnsetType = UNSET
    cuda_driver_version: int | UnsetType = UNSET
    hip_runtime_version: int | UnsetType = UNSET
    hip_driver_version: int | UnsetType = UNSET
    record_shapes: int | UnsetType = UNSET
    profile_memory: int | UnsetType = UNSET
    with_stack: int | UnsetType = UNSET
    with_flops: int | UnsetType = UNSET
    with_modules: int | UnsetType = UNSET
    trace_id: Text = UNSET
    displayTimeUnit: Text = UNSET
    base_ns: int | UnsetType = UNSET
    traceName: Text = UNSET


_DECODER = msgspec.json.Decoder(Document)
_ENCODER = msgspec.json.Encoder()


def parse(document: bytes) -> Document:
    """Decode a recording; raises `msgspec.DecodeError` where it is none."""
    return _DECODER.decode(document)


def serialize(document: Document) -> bytes:
    """The document as JSON text."""
    return _ENCODER.encode(document)
