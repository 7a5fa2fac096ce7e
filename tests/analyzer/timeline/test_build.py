"""Any trace makes a timeline, however odd."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import TraceBuilder
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.model import Category

NAMES = {
    Category.CPU_OP: (
        "aten::mm",
        "aten::item",
        "AddmmBackward0",
        "autograd::engine::evaluate_function: AddmmBackward0",
    ),
    Category.USER_ANNOTATION: (
        "ProfilerStep#3",
        "ProfilerStep#x",
        "Optimizer.step#SGD.step",
        "block",
        "gloo:all_reduce",
    ),
    Category.PYTHON_FUNCTION: (
        "nn.Module: Net_0",
        "train.py(3): loop",
        "torch/utils/data/dataloader.py(628): __next__",
    ),
    Category.RUNTIME: ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaMalloc", "hipGraphLaunch"),
    Category.KERNEL: ("sgemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "elementwise_kernel"),
    Category.MEMCPY: ("Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pageable)"),
    Category.MEMSET: ("Memset (Device)",),
    Category.SYNC: ("Context Sync", "Stream Wait Event"),
    Category.DEVICE_ANNOTATION: ("ProfilerStep#3",),
    Category.PROFILER: ("PyTorch Profiler (0)",),
    Category.OTHER: ("?",),
}


@st.composite
def events(draw):
    category = draw(st.sampled_from(list(NAMES)))
    fields = {
        "correlation": draw(st.integers(-1, 6)),
        "external_id": draw(st.integers(-1, 6)),
        "sequence": draw(st.integers(-1, 4)),
        "stream": draw(st.sampled_from([-1, 0, 7, 20])),
    }
    name = draw(st.sampled_from(NAMES[category]))
    return category, name, draw(st.integers(0, 300)), draw(st.integers(0, 100)), draw(st.integers(1, 3)), fields


@settings(max_examples=100, deadline=None)
@given(st.lists(events(), max_size=30))
def test_any_events_make_a_timeline(given_events):
    b = TraceBuilder()
    for category, name, start, duration, tid, fields in given_events:
        b.event(category, name, start, duration, tid=tid, **fields)
    timeline = build_timeline(b.build())
    figures = timeline.breakdown
    if len(timeline.steps):
        whole = figures.compute_pct + figures.memcpy_pct + figures.communication_exposed_pct + figures.idle_pct
        assert whole == pytest.approx(100)
        assert sum(figures.idle_by_cause_pct) == pytest.approx(figures.idle_pct, abs=1e-6)
        assert len(timeline.steps.steady) >= 1
        assert np.all(timeline.steps.duration_ns > 0)
        assert np.all(timeline.steps.start_ns[1:] >= timeline.steps.end_ns[:-1])
    assert np.all(timeline.tree.self_ns >= 0)
    assert np.all(timeline.idle.end_ns > timeline.idle.start_ns)
