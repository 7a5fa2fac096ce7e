"""The optional folder ../shared with recorded traces and their known figures."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.read import read_trace

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared(*parts: str) -> Path:
    """A file or folder of ../shared; skips the test, saying so, where it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {path}, which is not here")
    return path


def shared_traces() -> list[str]:
    """Names of all recorded traces, relative to ../shared; empty where the folder is absent."""
    found = [*SHARED.glob("traces/S*.json*"), *SHARED.glob("traces/S16*/*.json*"), *SHARED.glob("projects/*/trace*")]
    return sorted(str(path.relative_to(SHARED)) for path in found)


@cache
def shared_timeline(name: str) -> Timeline:
    """The timeline of one recorded trace, read once per process."""
    return build_timeline(read_trace(shared(name)))


@cache
def truth() -> dict[str, dict]:
    """What is known of each trace."""
    return json.loads(shared("traces", "truth.json").read_text(encoding="utf-8"))
