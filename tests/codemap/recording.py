"""Real runs under the profiler, with the line of every statement marked beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import NONE, Category
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.frames import Frames
from torchtraceap.codemap.labels import Kind, parse_label

torch = pytest.importorskip("torch")

_MARK = "LINE "


def record(
    run: Callable[[], object], source: Path, out: Path, beside: Callable[[Any, Path], object] | None = None
) -> Timeline:
    """Run under the profiler, with stacks; a mark says each line of `source` as it is reached.

    `beside` is given the profiler and the trace's file, and may write a recording beside that.

    The marks come from a trace function, which the profiler's own hook does not see: they leave one annotation each
    and no Python event.
    """
    name = str(source)

    def mark(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != name:
            return None
        if event == "line":
            with torch.profiler.record_function(f"{_MARK}{frame.f_lineno}"):
                pass
        return mark

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as profiler:
        sys.settrace(mark)
        try:
            run()
        finally:
            sys.settrace(None)
    profiler.export_chrome_trace(str(out))
    if beside is not None:
        beside(profiler, out)
    return build_timeline(read_trace(out))


@dataclass(frozen=True, slots=True)
class Ran:
    """An event that a function of the source ran itself, and the line it was on then."""

    row: int
    function: str
    line: int


def ran(timeline: Timeline, source: Path) -> list[Ran]:
    """Every operator and call that a marked function made, with the last line marked in that frame before it."""
    trace, frames = timeline.trace, Frames(timeline.trace, timeline.tree)
    line_of: dict[int, int] = {}
    children: dict[int, set[int]] = {}
    found = []
    for row in range(len(trace)):
        if trace.cat[row] not in (Category.CPU_OP, Category.PYTHON_FUNCTION, Category.USER_ANNOTATION):
            continue
        chain = [frame for frame in frames.chain(row) if frame != row]
        if not chain or not parse_label(trace.name_of(chain[0])).owner.endswith(source.name):
            continue
        frame, name = chain[0], trace.name_of(row)
        if trace.cat[row] == Category.USER_ANNOTATION:
            if name.startswith(_MARK):
                line_of[frame] = int(name.removeprefix(_MARK))
            continue
        if frame not in children:
            children[frame] = set(frames.children(frame).tolist())
        if row in children[frame] and line_of.get(frame, NONE) != NONE and "settrace" not in name:
            found.append(Ran(row, parse_label(trace.name_of(frame)).name, line_of[frame]))
    return found


def is_own_call(timeline: Timeline, row: int, source: Path) -> bool:
    """Whether the event is a frame of the source itself: it is then placed inside, not at its call."""
    label = parse_label(timeline.trace.name_of(row))
    return label.kind is Kind.FRAME and label.owner.endswith(source.name)
