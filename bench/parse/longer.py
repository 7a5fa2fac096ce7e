"""A long recording made of a short one: its events again and again, each time later and with new ids."""

from __future__ import annotations

import re
from pathlib import Path

_END = re.compile(rb"\n  \}\n  \],?")
_NUMBER = re.compile(rb'("ts": |"id": |"correlation": |"External id": |ProfilerStep#)(\d+)')
_STEP = b"ProfilerStep#"
_TIME = b'"ts": '
ID_STRIDE = 10_000_000


def write_longer(text: bytes, path: Path, copies: int) -> None:
    """Write the Kineto document `text` to `path` with its events `copies` times, each copy later by the whole span."""
    start = text.index(b'"traceEvents"')
    start = text.index(b"[", start) + 1
    ending = _END.search(text, start)
    if ending is None:
        raise ValueError("not laid out as Kineto does")
    events = text[start : ending.start()] + b"\n  }"
    # Cut once into literal text and numbers, so that a copy is a join and not a search.
    parts = _NUMBER.split(events)
    kinds = parts[1::3]
    values = [int(value) for value in parts[2::3]]
    times = [value for kind, value in zip(kinds, values, strict=True) if kind == _TIME and value]
    steps = [value for kind, value in zip(kinds, values, strict=True) if kind == _STEP]
    strides = {_TIME: max(times) - min(times) + 1000, _STEP: max(steps) - min(steps) + 1 if steps else 0}
    shifts = [strides.get(kind, ID_STRIDE) for kind in kinds]
    with path.open("wb") as file:
        file.write(text[:start])
        for copy in range(copies):
            moved = list(parts)
            moved[2::3] = [b"%d" % (value + copy * shift) for value, shift in zip(values, shifts, strict=True)]
            file.write(b"".join(moved) + (b"," if copy < copies - 1 else b""))
        file.write(text[ending.end() - 4 :] if copies else b"]}")
