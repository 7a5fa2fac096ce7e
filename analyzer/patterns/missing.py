"""What a recording lacks, and the profiler option that would have given it."""

from __future__ import annotations

import numpy as np

from ..timeline.model import StepSource, Timeline
from ..trace.model import DEVICE_CATEGORIES, NONE, Category

OPERATORS = "ProfilerActivity.CPU"
DEVICE = "ProfilerActivity.CUDA"
STACKS = "with_stack=True"
SHAPES = "record_shapes=True"
STEPS = "schedule=… and prof.step()"

GIVES = {
    OPERATORS: "the operators and lines that launch the device work",
    DEVICE: "the time on the device",
    STACKS: "the source line of each finding",
    SHAPES: "layouts, sizes and roofline positions",
    STEPS: "the time per step and the spread over steps",
}
"""What each option gives, as a clause."""

NEED_OF = {OPERATORS: "launches", DEVICE: "device", STACKS: "stack", SHAPES: "shapes", STEPS: "steps"}
"""The word of `Pattern.needs` that each option meets."""


def missing_options(timeline: Timeline) -> tuple[str, ...]:
    """Profiler options that this recording was made without and that would tell more, most useful first."""
    trace = timeline.trace
    has_operators = bool(len(trace.rows(Category.CPU_OP)))
    has_device = bool(len(trace.rows(*DEVICE_CATEGORIES)))
    missing: list[str] = []
    if not has_operators:
        missing.append(OPERATORS)
    if not has_device and any("LaunchKernel" in name for name in trace.names):
        missing.append(DEVICE)
    if not len(trace.rows(Category.PYTHON_FUNCTION)) and not trace.stacks:
        missing.append(STACKS)
    if not np.any(trace.inputs != NONE):
        missing.append(SHAPES)
    if timeline.steps.source in (StepSource.PERIOD, StepSource.WHOLE):
        missing.append(STEPS)
    return tuple(missing)
