"""Recorded traces, cross-checked with `json.loads`."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from tests.shared import shared, shared_traces
from torchtraceap.analyzer.trace.model import NONE
from torchtraceap.analyzer.trace.read import read_trace

from .documents import event


@pytest.mark.parametrize("name", shared_traces() or ["traces"])
def test_same_events_as_json(name: str) -> None:
    path = shared(name)
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parse_float=Decimal)
    events = document if isinstance(document, list) else document["traceEvents"]
    trace = read_trace(path)
    rows = np.argsort(trace.file_index)
    found = [events[position] for position in trace.file_index[rows].tolist()]
    assert [position for position, e in enumerate(events) if e["ph"] == "X"] == trace.file_index[rows].tolist()
    assert [int(Decimal(e["ts"]) * 1000) for e in found] == trace.ts_ns[rows].tolist()
    assert [int(Decimal(e["dur"]) * 1000) for e in found] == trace.dur_ns[rows].tolist()
    assert [e["name"] for e in found] == [trace.names[number] for number in trace.name[rows].tolist()]
    arguments = [e.get("args", {}) for e in found]
    assert [a.get("Call stack", "") for a in arguments] == [trace.stack_of(row) for row in rows]
    python = [a.get("Python id", NONE) for a in arguments]
    assert python == trace.python_id[rows].tolist()
    dims = [a.get("Input Dims", a.get("Input dims", [])) for a in arguments]
    assert [len(d) for d in dims] == [len(trace.inputs_of(row).dims) for row in rows]
    memory = sum(e["name"] == "[memory]" for e in events)
    assert len(trace.memory.ts_ns) == memory
    assert trace.problems == ()
    order = np.lexsort((trace.file_index, -trace.dur_ns, trace.ts_ns))
    assert (order == np.arange(len(trace))).all()


def test_memory_stays_below_the_document(tmp_path: Path) -> None:
    args = {"External id": 3, "Call stack": "model.py(3): forward;" * 20, "Input Dims": [[1, 2]], "Ev Idx": 1}
    events = [event(f"op{i % 50}", ts=i, args=args | {"External id": i}) for i in range(150_000)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    script = (
        "import sys; from pathlib import Path; from torchtraceap.analyzer.trace.read import read_trace\n"
        "def peak(): return int(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0]) * 1024\n"
        "before = peak(); trace = read_trace(Path(sys.argv[1])); print(peak() - before, len(trace))"
    )
    if not Path("/proc/self/status").is_file():
        pytest.skip("needs /proc to tell the peak memory of a process")
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    peak_bytes, rows = (int(word) for word in done.stdout.split())
    assert rows == 150_000
    assert peak_bytes < 0.6 * path.stat().st_size
