"""Reading features of small built traces: a window is a step there, so that what is in it is plain."""

import numpy as np

from torchtraceap.analyzer.detector.features import schema
from torchtraceap.analyzer.detector.model import Windows
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.model import NONE

HALF, FLOAT, DOUBLE = "c10::Half", "float", "double"


def step_windows(timeline):
    """One window for each steady step."""
    steps = timeline.steps
    steady = steps.steady
    place = np.full(len(steps) + 1, NONE, dtype=np.int32)
    place[steady] = np.arange(len(steady))
    count = len(steady)
    return Windows(
        start_ns=steps.start_ns[steady],
        end_ns=steps.end_ns[steady],
        step=steady.astype(np.int32),
        region=np.zeros(count, dtype=np.int32),
        regions=("step",),
        of=place[steps.of],
    )


class Reading:
    """The features of a trace's steps, by name."""

    def __init__(self, trace, windows=step_windows):
        self.timeline = build_timeline(trace)
        self.windows = windows(self.timeline)
        self.values = schema.compute(self.timeline, self.windows)

    def __getitem__(self, name):
        """The feature in the second steady step (the first where there is but one)."""
        return float(self.values[min(1, len(self.values) - 1), schema.NAMES.index(name)])

    def every(self, name):
        """The feature in all windows."""
        return self.values[:, schema.NAMES.index(name)]

    def count(self, name):
        """A count that is told as log10(1 + x)."""
        return round(10 ** self[name] - 1, 3)
