"""Traces whose windows have given scores, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tests.builders import TraceBuilder
from torchtraceap.analyzer.detector.explain import Reason
from torchtraceap.analyzer.detector.features.schema import FEATURES
from torchtraceap.analyzer.detector.model import WindowScores
from torchtraceap.analyzer.detector.windows import cut
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline

KINDS = ("blocking-transfer", "some-fault", "unfused-attention")


def layers(steps: int = 4, count: int = 8, us: float = 1000.0) -> Timeline:
    """Steps of layers that take the same time each, on the host: a window each."""
    b = TraceBuilder(devices=())
    for number in range(steps):
        with b.step(number):
            for layer in range(count):
                with b.frame(f"nn.Module: Layer_{layer}"):
                    b.leaf("aten::linear", us=us)
    return build_timeline(b.build())


def scores_of(timeline: Timeline, bad: Mapping[int, float], kind: int = 1, **fields) -> WindowScores:
    """Scores of a trace's windows: P(bad) of regions by their number, 0.05 of the others, all of it for one kind."""
    windows = cut(timeline)
    of_window = np.array([bad.get(int(region), 0.05) for region in windows.region])
    by_kind = np.full((len(windows), len(KINDS)), 0.001)
    by_kind[:, kind] = 0.98 * of_window
    nothing = np.zeros(len(windows), dtype=np.bool_)
    values = {
        "windows": windows,
        "bad": of_window,
        "kind": by_kind,
        "kinds": KINDS,
        "is_unknown": nothing,
        "is_single": nothing,
        "each_bad": of_window,
        "threshold": 0.5,
        "usual_bad": 0.3,
        "usual_kind": np.full(len(KINDS), 0.05),
    }
    return WindowScores(**(values | fields))


def region_of(timeline: Timeline, layer: int) -> int:
    """The region that holds a layer of `layers`."""
    windows = cut(timeline)
    name = timeline.trace.names.index(f"nn.Module: Layer_{layer}")
    return int(windows.region[windows.of[np.flatnonzero(timeline.trace.name == name)[-1]]])


@dataclass(frozen=True, slots=True)
class Saying:
    """Stands for a detector's look: these scores, and reasons."""

    scores: WindowScores
    asked: list[list[int]] = field(default_factory=list)

    def look(self, timeline: Timeline) -> Saying:
        return self

    def reasons(self, windows: np.ndarray) -> tuple[tuple[Reason, ...], ...]:
        self.asked.append(windows.tolist())
        return tuple((Reason(FEATURES[0], 1.0, 0.0, 2.0),) for _ in windows)
