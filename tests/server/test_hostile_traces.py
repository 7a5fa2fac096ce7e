"""Recorded traces with fields made hostile: the whole way to a report, and nothing but a TraceError on it."""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.patterns.registry import all_patterns
from torchtraceap.analyzer.report.json import json_schema, to_json
from torchtraceap.analyzer.report.sarif import to_sarif
from torchtraceap.analyzer.report.text import to_text
from torchtraceap.analyzer.trace.limits import TraceError
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.place import place
from torchtraceap.codemap.project import open_workspace

from .cli import LEAVES, ROOT, TRACE

EVENTS = 3000
NUMBERS = [0, -1, 2**31, 2**53, 2**63, -(2**63), 10**30, 1e300, float("nan"), float("inf"), "9" * 5000, 4.6e15]
TEXTS = [
    "",
    "\0",
    "\x1b[31m",
    "\ud800",
    "a\nb",
    "x" * 9999,
    "ProfilerStep#" + "9" * 5000,
    "model.py(" + "9" * 5000 + "): f",
]
TEXTS += [
    "model.py(" + "9" * 5000 + "): f",
    "/etc/passwd(1): root",
    "../../etc/passwd(1): root",
    "nn.Module: _",
    "[\u00b2, \u00b2]",
    "stream \u00b2",
]
OTHERS = [None, True, [], {}, [[-1, 2**70]], [[2**62] * 4], ["a", {"b": 1}], {"a": [1, 2]}]
HOSTILE = [*NUMBERS, *TEXTS, *OTHERS]
VALIDATOR = jsonschema.Draft202012Validator(json.loads(json_schema()))


def hostile_trace(seed: int) -> str:
    """A stretch of the bundled recording in which some fields, or one everywhere, are not what they should be."""
    chance = random.Random(seed)
    events = json.loads(gzip.decompress(TRACE.read_bytes()))["traceEvents"]
    first = chance.randrange(len(events) - EVENTS)
    events = events[first : first + EVENTS]
    share = chance.choice([0.01, 0.3, 1.0])
    everywhere = chance.choice([None, *sorted({name for event in events for name in event.get("args", {})})])
    for event in events:
        fields: dict[str, Any] = event
        if chance.random() < 0.7 and event.get("args"):
            fields = event["args"]
        name = everywhere if everywhere in fields else chance.choice(sorted(fields))
        if chance.random() < share:
            fields[name] = chance.choice(HOSTILE)
    return json.dumps({"traceEvents": events})


@pytest.fixture(scope="module")
def opened() -> list[str]:
    """The path of every file that this process opens from now on."""
    paths: list[str] = []
    sys.addaudithook(lambda event, arguments: paths.append(str(arguments[0])) if event == "open" else None)
    return paths


@pytest.mark.parametrize("seed", range(24))
def test_a_hostile_trace_gives_a_valid_report_and_opens_nothing_else(
    tmp_path: Path, opened: list[str], seed: int
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(hostile_trace(seed))
    opened.clear()
    try:
        report = place(analyze(read_trace(path)), open_workspace(LEAVES))
    except TraceError:
        return
    document = json.loads(to_json(report), parse_constant=pytest.fail)
    VALIDATOR.validate(document)
    json.loads(to_sarif(report, all_patterns(), "1"), parse_constant=pytest.fail)
    assert "\x1b" not in to_text(report, lambda place: None, lambda slug: "").plain
    assert not [name for name in opened if not name.startswith((str(path), str(ROOT), sys.prefix, sys.base_prefix))]
