"""What rules say of windows adds up to what they say of the step."""

import numpy as np
import pytest

from bench.detector.rule_scores import rule_scores
from tests.patterns.scenes import TraceBuilder, on_cpu
from torchtraceap.analyzer.antipatterns import AntiPatternDetector
from torchtraceap.analyzer.detector.windows import cut
from torchtraceap.analyzer.timeline.build import build_timeline

IMAGE, WEIGHT = (4, 64, 56, 56), (64, 64, 3, 3)
SLUG = "fallback-kernel"


@pytest.fixture(scope="module")
def timeline():
    inner, types = ("", "", "", "[1, 1]", "[1, 1]"), ("float", "float")
    sizes = ("", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1")

    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            b.leaf("aten::mm", us=20_000, shapes=((2048, 2048), (2048, 2048)), types=types)
        with b.op("aten::conv2d", us=8, shapes=(IMAGE, WEIGHT), types=types, concrete=sizes):
            b.leaf("aten::_slow_conv2d_forward", us=120_000, shapes=(IMAGE, WEIGHT), types=types, concrete=inner)

    return build_timeline(on_cpu(body, frames=("train.py(40): main", "net.py(9): forward")))


def test_a_finding_is_spread_over_the_windows_that_hold_it(timeline):
    windows = cut(timeline)
    scores = rule_scores(timeline, windows, ("redundant-copy", SLUG))
    (finding,) = [one for one in AntiPatternDetector().check(timeline) if one.slug == SLUG]
    assert scores.shape == (len(windows), 2)
    assert not scores[:, 0].any()
    worth = finding.saving_pct / 100 * finding.probability
    for step in np.unique(windows.step):
        assert scores[windows.step == step, 1].sum() == pytest.approx(worth, rel=1e-3)
    row = timeline.trace.rows_named(("aten::_slow_conv2d_forward",))[0]
    assert scores[windows.of[row], 1] == pytest.approx(worth, rel=1e-3)
