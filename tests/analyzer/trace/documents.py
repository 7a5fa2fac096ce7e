"""Writing small trace documents for the tests, as different writers would."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchtraceap.analyzer.trace.model import Trace
from torchtraceap.analyzer.trace.read import read_trace


def event(name: str = "aten::add", ts: object = 10, dur: object = 5, **fields: Any) -> dict[str, Any]:
    """A complete event of an operator, unless `fields` say otherwise."""
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **fields}


def read_text(folder: Path, text: str | bytes, **options: Any) -> Trace:
    """Read `text` as a trace file."""
    path = folder / "trace.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_trace(path, **options)


def read_events(folder: Path, events: Sequence[Any], **document: Any) -> Trace:
    """Read a document with these events."""
    return read_text(folder, json.dumps({"schemaVersion": 1, "traceEvents": events, **document}))


def gzipped(text: bytes) -> bytes:
    """`text` as a gzip file's content."""
    return gzip.compress(text, mtime=0)


def kinds(trace: Trace) -> dict[str, int]:
    """How many problems of each kind were counted."""
    return {problem.kind: problem.count for problem in trace.problems}
