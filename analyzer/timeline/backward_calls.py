"""Where Python starts the backward pass: the place of what the autograd engine does without a line of its own."""

from __future__ import annotations

import re

import numpy as np

from ..trace.model import NONE, Category, IntArray
from .columns import is_named
from .model import Timeline
from .select import outermost, steady

_BACKWARD = re.compile(r"torch/(_tensor|autograd/__init__)\.py\(\d+\): backward$|<built-in method run_backward of ")


def backward_calls(timeline: Timeline) -> IntArray:
    """The frames of the steady steps in which Python waits for a backward pass. Empty without Python stacks."""
    trace = timeline.trace
    frames = steady(timeline, trace.rows(Category.PYTHON_FUNCTION))
    return outermost(timeline, frames[is_named(trace, frames, _BACKWARD.search)])


def python_places(timeline: Timeline, hosts: IntArray) -> IntArray:
    """For each host row, a row whose source line caused it: itself if it lies under a Python frame, else the call of
    the backward pass that it is part of, else itself."""
    calls = backward_calls(timeline)
    if not len(calls):
        return hosts
    trace = timeline.trace
    moment = trace.ts_ns[hosts]
    at = np.searchsorted(trace.ts_ns[calls], moment, side="right") - 1
    call = calls[np.maximum(at, 0)]
    is_inside = (at >= 0) & (trace.end_ns[call] >= moment) & (timeline.tree.python[hosts] == NONE)
    return np.where(is_inside, call, hosts)
