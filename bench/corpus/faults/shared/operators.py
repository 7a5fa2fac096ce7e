"""Rows of operators within operators, for faults that are settings."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from torchtraceap.analyzer.timeline.convolution_calls import backward_rows, convolution_calls
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.timeline.select import backward_of, outermost
from torchtraceap.analyzer.trace.model import BoolArray

from .rows import named, no_rows, under


def convolutions(timeline: Timeline, axes: int) -> BoolArray:
    """Convolutions over so many axes with all they run, forward and backward."""
    calls = convolution_calls(timeline)
    calls = calls.chosen([shape.axes == axes for shape in calls.shapes])
    found = no_rows(timeline)
    found[np.concatenate([calls.rows, *backward_rows(timeline, calls)])] = True
    return under(timeline, found)


def parents_named(timeline: Timeline, name: str, parents: Collection[str]) -> BoolArray:
    """Host events of a name, with all they run, of which one of those around them has one of the other names."""
    within = under(timeline, named(timeline, parents.__contains__))
    return under(timeline, named(timeline, lambda its: its == name) & within)


def within_modules(timeline: Timeline, module: str, names: Collection[str]) -> BoolArray:
    """Operators of some names, with all they run and their backward, that calls of a class of modules hold."""
    calls = named(timeline, lambda name: name.startswith(f"nn.Module: {module}_"))
    found = named(timeline, names.__contains__) & under(timeline, calls)
    forward = outermost(timeline, np.flatnonzero(found))
    found[np.concatenate([forward, *backward_of(timeline, forward)])] = True
    return under(timeline, found)
