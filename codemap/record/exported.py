"""The trace file: what the profiler exported, without the recorder's own frames, with a mark for each step."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ...analyzer.trace.recording import MODULE_TAG

_TAGGED = re.compile(rb'"cat": "cpu_op",(\s*)"name": "' + re.escape(MODULE_TAG.encode()))
_EVENTS = b'"traceEvents": ['
_BETWEEN = b"\n  },\n  {"
_TIMED = frozenset({"X", "i", "s", "f"})
_OPTIMIZER_STEP = "Optimizer.step#"
_LEVEL = 3


class _Arguments(msgspec.Struct, gc=False):
    python_id: int | None = msgspec.field(default=None, name="Python id")
    python_parent: int | None = msgspec.field(default=None, name="Python parent id")
    external_id: int | None = msgspec.field(default=None, name="External id")


class ExportedEvent(msgspec.Struct, gc=False):
    """What the recorder reads of an event of the file."""

    name: str = ""
    ph: str = ""
    cat: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0
    """In µs since the file's base."""
    dur: float = 0
    args: _Arguments = msgspec.field(default_factory=_Arguments)

    @property
    def start_ns(self) -> int:
        """Since the file's base."""
        return round(self.ts * 1000)

    @property
    def end_ns(self) -> int:
        """Since the file's base; as a sum of whole ns, as readers form it."""
        return self.start_ns + round(self.dur * 1000)


class _Document(msgspec.Struct):
    traceEvents: list[ExportedEvent] = []
    baseTimeNanoseconds: int = 0


@dataclass(frozen=True, slots=True)
class Exported:
    """An exported file, read."""

    text: bytes
    events: list[ExportedEvent]
    base_ns: int
    """Unix time of the file's zero."""

    def unix_ns(self, event: ExportedEvent) -> int:
        """When the event begins."""
        return event.start_ns + self.base_ns


def read_exported(path: Path) -> Exported:
    """Read what the profiler wrote. Raises msgspec.DecodeError for anything else."""
    text = path.read_bytes()
    try:
        document = msgspec.json.decode(text, type=_Document)
    except UnicodeDecodeError:  # seen of calls that were still running when the profiler stopped
        text = text.decode("utf-8", errors="replace").encode()
        document = msgspec.json.decode(text, type=_Document)
    return Exported(text, document.traceEvents, document.baseTimeNanoseconds)


def own_frames(events: Sequence[ExportedEvent], own_names: Collection[str]) -> frozenset[int]:
    """Positions of the Python events of the recorder's own files, and of all that these called.

    `own_names`: endings of the file names in the events' names.
    """
    endings = tuple(own_names)
    dropped_ids: set[int] = set()
    dropped: set[int] = set()
    python = [(i, event) for i, event in enumerate(events) if event.cat == "python_function"]
    # Callers have smaller numbers than what they call.
    for i, event in sorted(python, key=lambda item: item[1].args.python_id or 0):
        is_own = event.name.partition("(")[0].endswith(endings)
        if is_own or event.args.python_parent in dropped_ids:
            dropped.add(i)
            if event.args.python_id is not None:
                dropped_ids.add(event.args.python_id)
    return frozenset(dropped)


def before_first(events: Sequence[ExportedEvent], start_ns: int) -> frozenset[int]:
    """Positions of what was over before the first step: the profiler's own warm-up is not kept."""
    return frozenset(i for i, event in enumerate(events) if event.ph in _TIMED and event.end_ns < start_ns)


def step_bounds(exported: Exported, moments_ns: Sequence[int], inside: str) -> list[tuple[int, ExportedEvent]]:
    """Where the steps part, in ns since the file's base, each with an event of the thread that they run on.

    `moments_ns` were taken inside a range: one of an optimizer's step, or of a module's call. A step ends with the
    first and begins with the second; the range itself is never cut. `inside` is "optimizer" or "module".
    """
    ranges = [event for event in exported.events if event.ph == "X" and _parts(event, inside)]
    found = []
    for moment_ns in moments_ns:
        moment = moment_ns - exported.base_ns
        around = [event for event in ranges if event.start_ns <= moment <= event.end_ns]
        if around:
            outer = max(around, key=lambda event: event.dur)
            found.append((outer.end_ns if inside == "optimizer" else outer.start_ns, outer))
        elif ranges:
            found.append((moment, ranges[0]))
    return found


def _parts(event: ExportedEvent, inside: str) -> bool:
    if inside == "optimizer":
        return event.name.startswith(_OPTIMIZER_STEP)
    return event.cat == "python_function" and event.name.startswith("nn.Module: ")


def rewritten(
    exported: Exported, dropped: Collection[int], bounds: Sequence[tuple[int, ExportedEvent]], first: int
) -> bytes:
    """The file's text without the events at `dropped`, the tags as annotations, and with marks for the steps.

    `first` is the number of the first step. A file that is laid out in another way than expected keeps all events.
    """
    text = _TAGGED.sub(rb'"cat": "user_annotation",\1"name": "' + MODULE_TAG.encode(), exported.text)
    marks = b"".join(_mark(first + i, start, end) for i, (start, end) in enumerate(itertools.pairwise(bounds)))
    head, found, body = text.partition(_EVENTS)
    if not found:
        return text
    pieces = body.split(_BETWEEN)
    if dropped and len(pieces) == len(exported.events):
        last = len(pieces) - 1  # it bears the end of the file
        pieces = [piece for i, piece in enumerate(pieces) if i not in dropped or i in (0, last)]
    return head + _EVENTS + marks + _BETWEEN.join(pieces)


def _mark(number: int, start: tuple[int, ExportedEvent], end: tuple[int, ExportedEvent]) -> bytes:
    event: dict[str, Any] = {
        "ph": "X",
        "cat": "user_annotation",
        "name": f"ProfilerStep#{number}",
        "pid": start[1].pid,
        "tid": start[1].tid,
        "ts": start[0] / 1000,
        "dur": (end[0] - start[0]) / 1000,
        "args": {},
    }
    return b"\n" + textwrap.indent(json.dumps(event, indent=2), "  ").encode() + b","


def compressed(text: bytes) -> bytes:
    """As a `.gz` file."""
    try:
        from isal import igzip
    except ImportError:  # another Python than torchtraceap's own may lack it
        return gzip.compress(text, _LEVEL)
    return igzip.compress(text, _LEVEL)
