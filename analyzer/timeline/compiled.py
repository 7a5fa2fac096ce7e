"""The marks that `torch.compile` leaves in a trace: compiled regions, and compilations."""

from __future__ import annotations

import re

import numpy as np

from ..trace.model import NONE, IntArray
from .edit import no_rows
from .model import Timeline
from .select import outermost

REGION = "Torch-Compiled Region"
CACHE_LOOKUP = "TorchDynamo Cache Lookup"
BACKWARD = ("CompiledFunctionBackward",)
_ID = re.compile(re.escape(REGION) + r": (\d{1,6})/(\d{1,6})")
_COMPILES = re.compile(
    r"entire_(frame|backward)_compile$|_compile\.compile_inner|backward\._backward_impl \(dynamo_timed\)"
    r"|(.*/)?torch/_dynamo/convert_frame\.py\(\d+\): _compile$|(.*/)?torch/_inductor/compile_fx\.py\(\d+\): compile_fx"
)
_COMPILED_KERNEL = re.compile(r"triton_")
_BREAK = re.compile(r"(?P<path>.+)\((?P<line>\d+)\): torch_dynamo_resume_in_(?P<name>.+)_at_(?P<at>\d+)$")


def regions(timeline: Timeline) -> IntArray:
    """Executions of compiled code, those inside others too."""
    names = timeline.trace.names
    return _rows(timeline, [i for i, name in enumerate(names) if name.startswith(REGION)])


def region_id(name: str) -> tuple[int, int]:
    """Which function a region's code is compiled from, and the how manyeth compilation of it; NONE where not named."""
    found = _ID.match(name)
    return (int(found[1]), int(found[2])) if found else (NONE, NONE)


def compilations(timeline: Timeline) -> IntArray:
    """Stretches of the host that compile, in any step; outermost ones only."""
    names = timeline.trace.names
    return outermost(timeline, _rows(timeline, [i for i, name in enumerate(names) if _COMPILES.match(name)]))


def resumptions(timeline: Timeline) -> IntArray:
    """Frames in which a function goes on behind a graph break."""
    names = timeline.trace.names
    return _rows(timeline, [i for i, name in enumerate(names) if "torch_dynamo_resume_in_" in name])


def break_line(frame: str) -> int:
    """The line at which a function was left: 9 of `net.py(9): torch_dynamo_resume_in_forward_at_9`; NONE if unknown."""
    found = _BREAK.match(frame)
    return int(found["at"]) if found else NONE


def runs_compiled(timeline: Timeline) -> bool:
    """Whether any compiled code ran in the recording."""
    return any(name.startswith(REGION) or _COMPILED_KERNEL.match(name) for name in timeline.trace.names)


def _rows(timeline: Timeline, names: list[int]) -> IntArray:
    return np.flatnonzero(np.isin(timeline.trace.name, names)) if names else no_rows()
