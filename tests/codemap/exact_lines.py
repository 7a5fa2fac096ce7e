"""The caller lines that a recording run writes, taken here from the profiler's own event tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchtraceap.analyzer.trace.model import Category
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.analyzer.trace.recording import ExactLines, Recording, write_recording
from torchtraceap.codemap.git import blob_hash


def write_caller_lines(profiler: Any, out: Path, source: Path) -> Recording:
    """Write beside the trace `out` on which line of `source` each Python event was called."""
    trace = read_trace(out)
    lines: dict[tuple[int, str], int] = {}
    pending = list(profiler.profiler.kineto_results.experimental_event_tree())
    while pending:
        event = pending.pop()
        pending.extend(event.children)
        caller = getattr(event.extra_fields, "caller", None)
        if caller is not None and caller.file_name.endswith(source.name):
            lines[event.start_time_ns - trace.info.base_ns, event.name] = caller.line_number
    rows = [
        (int(trace.python_id[row]), 0, lines[key])
        for row in trace.rows(Category.PYTHON_FUNCTION).tolist()
        if (key := (int(trace.ts_ns[row]), trace.name_of(row))) in lines
    ]
    recording = Recording(
        files=(str(source),),
        sources={str(source): blob_hash(source.read_text())},
        python_lines=ExactLines(*zip(*rows, strict=True)),
    )
    write_recording(out, recording)
    return recording
