"""One event as the reader sees it: only the fields somebody asks for, decoded by msgspec straight into slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .model import NONE
from .repair import repairs

Scalar = int | float | str | None
"""A number that some writers quote, leave null or print as a float."""

MENDABLE_BYTES = 1 << 20
"""Larger damaged events are not worth the time."""

NOTHING = msgspec.Raw()


class Args(
    msgspec.Struct,
    gc=False,
    frozen=True,
    rename={
        "external_id": "External id",
        "external_id_lower": "external id",
        "sequence": "Sequence number",
        "python_id": "Python id",
        "python_parent": "Python parent id",
        "stack": "Call stack",
        "dims": "Input Dims",
        "dims_lower": "Input dims",
        "strides": "Input Strides",
        "types": "Input type",
        "concrete": "Concrete Inputs",
        "collective": "Collective name",
        "elements_in": "In msg nelems",
        "elements_out": "Out msg nelems",
        "group_size": "Group size",
        "group_name": "Process Group Name",
        "memory_bytes": "Bytes",
        "address": "Addr",
        "device_id": "Device Id",
        "device_type": "Device Type",
        "total_allocated": "Total Allocated",
        "total_reserved": "Total Reserved",
        "sync_stream": "wait_on_stream",
        "sync_event": "wait_on_cuda_event_record_corr_id",
    },
):
    """The `args` of an event. `Raw` fields keep the JSON text and are decoded only if somebody looks."""

    external_id: Scalar = NONE
    external_id_lower: Scalar = NONE
    sequence: Scalar = NONE
    python_id: Scalar = NONE
    python_parent: Scalar = NONE
    correlation: Scalar = NONE
    device: Scalar = NONE
    stream: Scalar = NONE
    bytes: Scalar = NONE
    size: Scalar = NONE
    stack: msgspec.Raw = NOTHING
    dims: msgspec.Raw = NOTHING
    dims_lower: msgspec.Raw = NOTHING
    strides: msgspec.Raw = NOTHING
    types: msgspec.Raw = NOTHING
    concrete: msgspec.Raw = NOTHING
    collective: str | None = None
    elements_in: Scalar = NONE
    elements_out: Scalar = NONE
    dtype: Scalar = None
    group_size: Scalar = NONE
    group_name: Scalar = None
    memory_bytes: Scalar = NONE
    address: Scalar = NONE
    device_id: Scalar = NONE
    device_type: Scalar = NONE
    total_allocated: Scalar = NONE
    total_reserved: Scalar = NONE
    sync_stream: Scalar = NONE
    sync_event: Scalar = NONE
    name: Scalar = None


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False, frozen=True):
    """One entry of `traceEvents`. `ts` and `dur` stay text: see timestamps.py."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Scalar = None
    tid: Scalar = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    id: Scalar = None
    args: Args = NO_ARGS


_LIST = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)
_ANYTHING = msgspec.json.Decoder()
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_RAW_ARGS = frozenset({"stack", "dims", "dims_lower", "strides", "types", "concrete"})


def decode_events(text: bytes) -> list[Event] | None:
    """The events of `text`, JSON objects parted by commas; None unless it is exactly that, with the usual types."""
    try:
        return _LIST.decode(b"[%b]" % text)
    except _UNREADABLE:
        return None


def decode_event(text: bytes, *, mend: bool = True) -> Event | None:
    """The one event that `text` is, with fields of any type; None if it is none.

    `mend` allows for text that is not quite JSON: see repair.py.
    """
    if event := _plain_event(text) or _odd_event(text):
        return event
    if mend and len(text) <= MENDABLE_BYTES:
        for mended in repairs(text):
            if event := _plain_event(mended) or _odd_event(mended):
                return event
    return None


def _plain_event(text: bytes) -> Event | None:
    try:
        return _EVENT.decode(text)
    except _UNREADABLE:
        return None


def _odd_event(text: bytes) -> Event | None:
    """An event whose fields have unusual types, such as `"args": "x"` or `"name": 3`."""
    try:
        fields = _ANYTHING.decode(text)
    except _UNREADABLE:
        return None
    if not isinstance(fields, dict):
        return None
    args = fields.get("args")
    return Event(
        ph=_text(fields.get("ph")),
        cat=_text(fields.get("cat")),
        name=_text(fields.get("name")),
        pid=_scalar(fields.get("pid")),
        tid=_scalar(fields.get("tid")),
        ts=_raw(fields.get("ts")),
        dur=_raw(fields.get("dur")),
        id=_scalar(fields.get("id")),
        args=_odd_args(args) if isinstance(args, dict) else NO_ARGS,
    )


def _odd_args(fields: Mapping[str, Any]) -> Args:
    known = {}
    for field in msgspec.structs.fields(Args):
        value = fields.get(field.encode_name)
        if value is None:
            continue
        if field.name in _RAW_ARGS:
            known[field.name] = _raw(value)
        elif field.name == "collective":
            known[field.name] = _text(value)
        else:
            known[field.name] = _scalar(value)
    return Args(**known)


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _scalar(value: object) -> Scalar:
    return value if value is None or isinstance(value, (int, float, str)) else None


def _raw(value: object) -> msgspec.Raw:
    return NOTHING if value is None else msgspec.Raw(msgspec.json.encode(value))
