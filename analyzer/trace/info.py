"""The document without its events -> TraceInfo."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from .limits import Limits
from .model import NONE, DeviceProperties, Distributed, TraceInfo
from .nesting import deeper_than
from .problems import ProblemLog
from .repair import repairs
from .scalars import to_integers

_DEVICE_KEYS = ("deviceProperties", "computeProperties")


def read_info(skeleton: bytes, path: Path, raw_bytes: int, limits: Limits, problems: ProblemLog) -> TraceInfo:
    """What the document says besides its events; what it says in an unusable form counts as not said."""
    too_deep = deeper_than(skeleton, limits.max_depth)
    fields = None if too_deep else _decode(skeleton)
    if too_deep:
        problems.add("limit", f"the document's own fields nest deeper than {limits.max_depth}; they were not read")
        fields = {}
    elif fields is None:
        problems.add("metadata", "what the document says besides its events is damaged")
        fields = {}
    return TraceInfo(
        paths=(os.fsencode(path).decode(errors="replace"),),
        devices=_devices(fields),
        distributed=_distributed(fields.get("distributedInfo")),
        with_stack=_flag(fields.get("with_stack")),
        record_shapes=_flag(fields.get("record_shapes")),
        profile_memory=_flag(fields.get("profile_memory")),
        base_ns=_integer(fields.get("baseTimeNanoseconds")),
        cuda_runtime_version=_integer(fields.get("cuda_runtime_version")),
        hip_runtime_version=_integer(fields.get("hip_runtime_version")),
        torch_version=_text(fields.get("torch_version") or fields.get("pytorch_version")),
        raw_bytes=raw_bytes,
    )


def _decode(skeleton: bytes) -> Mapping[str, Any] | None:
    for text in (skeleton, *repairs(skeleton)):
        try:
            document = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue
        return document if isinstance(document, dict) else {}
    return None


def _devices(fields: Mapping[str, Any]) -> tuple[DeviceProperties, ...]:
    listed = next((fields[key] for key in _DEVICE_KEYS if isinstance(fields.get(key), list)), [])
    return tuple(_device(entry, index) for index, entry in enumerate(listed) if isinstance(entry, dict))


def _device(entry: Mapping[str, Any], index: int) -> DeviceProperties:
    return DeviceProperties(
        index=_integer(entry.get("id"), index),
        name=_text(entry.get("name")),
        total_memory_bytes=_integer(entry.get("totalGlobalMem")),
        compute_major=_integer(entry.get("computeMajor", entry.get("major"))),
        compute_minor=_integer(entry.get("computeMinor", entry.get("minor"))),
        multiprocessors=_integer(entry.get("numSms")),
        warp_size=_integer(entry.get("warpSize")),
    )


def _distributed(entry: object) -> Distributed | None:
    if not isinstance(entry, dict):
        return None
    return Distributed(
        backend=_text(entry.get("backend")),
        rank=_integer(entry.get("rank"), NONE),
        world_size=_integer(entry.get("world_size"), NONE),
    )


def _flag(value: object) -> bool | None:
    return None if value is None else bool(value)


def _integer(value: object, default: int = 0) -> int:
    number = to_integers([value])[0] if isinstance(value, (int, float, str)) else NONE
    return default if number == NONE else int(number)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
