from dataclasses import replace

import numpy as np
import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import A100, V100, TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import DeviceProperties, MemoryTable, Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"


def _with_peak(share: float, *, device: DeviceProperties = A100, reserved: float = 0.0, steps: int = 4) -> Trace:
    """In the middle of each step `share` of the memory is allocated, a tenth of it at its ends."""

    def body(b: TraceBuilder) -> None:
        for _ in range(10):
            b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=100)

    trace = on_device(body, device=device, steps=steps)
    operators = trace.rows_named(("aten::linear",))
    middle, last = operators[5::10], operators[9::10]
    moments = np.sort(np.concatenate([trace.ts_ns[middle], trace.ts_ns[last]]))
    total = device.total_memory_bytes
    allocated = np.tile([int(share * total), int(0.1 * total)], len(middle))
    held = np.full(len(moments), int(max(share, reserved) * total))
    changes = np.diff(allocated, prepend=int(0.1 * total))
    zeros = np.zeros(len(moments), dtype=np.int64)
    return replace(trace, memory=MemoryTable(moments, zeros, changes, zeros.astype(np.int32), allocated, held))


def positive_almost_all_of_an_a100() -> Trace:
    return _with_peak(0.96)


def positive_just_over_the_mark() -> Trace:
    return _with_peak(0.91, device=V100)


def negative_three_quarters() -> Trace:
    return _with_peak(0.75)


def negative_only_reserved() -> Trace:
    """The allocator keeps nearly everything, which it would give back."""
    return _with_peak(0.6, reserved=0.98)


def negative_size_of_memory_unknown() -> Trace:
    trace = _with_peak(0.96)
    unknown = replace(A100, total_memory_bytes=0)
    return replace(trace, info=replace(trace.info, devices=(unknown,)))


def negative_recorded_on_the_cpu() -> Trace:
    torch = pytest.importorskip("torch")
    net, images = torch.nn.Conv2d(8, 8, 3), torch.rand(4, 8, 64, 64)
    return record(lambda: net(images).sum().backward(), profile_memory=True)
