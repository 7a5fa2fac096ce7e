"""The rank of a trace from the first bytes of its file, without reading the events."""

from __future__ import annotations

import re
from pathlib import Path

from .limits import Limits, TraceError
from .model import NONE, Distributed
from .problems import ProblemLog
from .scalars import whole_number
from .stream import read_blocks

_WITHIN_BYTES = 1 << 20
"""The profiler writes `distributedInfo` before the events. Before it stand the devices' properties, no more."""
_INFO = re.compile(rb'"distributedInfo"\s*:\s*\{(.{0,4096})', re.DOTALL)
_NUMBER = rb'"%b"\s*:\s*"?(\d{1,9})"?'
_BACKEND = re.compile(rb'"backend"\s*:\s*"([^"]*)"')


def peek_distributed(path: Path) -> Distributed | None:
    """What the head of a trace says of its job; None if it says nothing, or cannot be read."""
    found = _INFO.search(_head(path))
    if not found:
        return None
    backend = _BACKEND.search(found[1])
    return Distributed(
        backend=backend[1].decode(errors="replace") if backend else "",
        rank=_number(b"rank", found[1]),
        world_size=_number(b"world_size", found[1]),
    )


def _head(path: Path) -> bytes:
    """The document up to its events, or as much of it as may be expected to hold more than events."""
    head = b""
    try:
        for block in read_blocks(path, Limits(), ProblemLog(), lambda share: None):
            head += block
            if b'"traceEvents"' in head or len(head) >= _WITHIN_BYTES:
                break
    except (OSError, TraceError):
        return b""
    return head.partition(b'"traceEvents"')[0]


def _number(name: bytes, text: bytes) -> int:
    found = re.search(_NUMBER % name, text)
    return whole_number(found[1].decode()) if found else NONE
