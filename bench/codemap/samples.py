"""A sample project as recorded in three ways: with everything, without shapes, without stacks.

No clock ran beside these. What the first is placed at, by its stacks, counts as the truth of the other two.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.model import Category, Trace
from torchtraceap.analyzer.trace.read import read_trace
from torchtraceap.codemap.locate import Locator
from torchtraceap.codemap.project import open_workspace

from ..folder import DEFAULT_FOLDER
from .clock import Mark
from .job import Outcome
from .score import Scored, judge, shares_of
from .strip import Mode
from .truth import Truth

PROJECT = DEFAULT_FOLDER.parent / "projects" / "unet_seg"
WHOLE = "trace.json.gz"
RECORDINGS = {"trace_noshape.json.gz": Mode.STACK, "trace_nostack.json.gz": Mode.SHAPE}


def sample_outcomes() -> Iterator[Outcome]:
    """An outcome for each recording but the first; none where the project is not at hand."""
    if not PROJECT.is_dir():
        return
    whole = read_trace(PROJECT / WHOLE)
    known = _truths(whole, PROJECT)
    for name, mode in RECORDINGS.items():
        other = read_trace(PROJECT / name)
        truths = _moved(known, whole, other)
        verdicts, cpu_s = judge(PROJECT / name, open_workspace(PROJECT), truths)
        yield Outcome(f"unet_seg {name.partition('.')[0]}", {mode: Scored(shares_of(verdicts), (), cpu_s)})


def _truths(trace: Trace, root: Path) -> list[Truth | None]:
    """For each operator of a recording, in order of time; None for one that counts nowhere."""
    timeline = build_timeline(trace)
    locator = Locator(timeline, open_workspace(root))
    rows = trace.rows(Category.CPU_OP)
    found: list[Truth | None] = []
    for row, is_steady in zip(rows.tolist(), timeline.steps.are_steady(rows).tolist(), strict=True):
        place = locator.locate(row) if is_steady and timeline.tree.self_ns[row] > 0 else None
        if place is None:
            found.append(None)
            continue
        mark = Mark(place.location.path, place.location.qualname, place.line)
        weight_ns = int(timeline.tree.self_ns[row])
        found.append(Truth(int(trace.external_id[row]), trace.name_of(row), mark, weight_ns, is_tagged=False))
    return found


def _moved(known: list[Truth | None], whole: Trace, other: Trace) -> list[Truth]:
    """The same truths for another recording of the same program: its operators come in the same order."""
    rows, others = whole.rows(Category.CPU_OP), other.rows(Category.CPU_OP)
    names = [whole.name_of(row) for row in rows.tolist()]
    if names != [other.name_of(row) for row in others.tolist()]:
        raise ValueError("the recordings do not hold the same operators in the same order")
    ids = np.asarray(other.external_id[others]).tolist()
    return [
        Truth(number, truth.name, truth.mark, truth.weight_ns, is_tagged=False)
        for truth, number in zip(known, ids, strict=True)
        if truth is not None
    ]
