import gc

import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

EMPTY_CACHE = "torch/cuda/memory.py(216): empty_cache"


def _work(b: TraceBuilder, allocations: int = 0) -> None:
    for number in range(5):
        with b.op("aten::conv2d", us=20):
            if number < allocations:
                b.launch("cudaMalloc", us=400)
            b.kernel("implicit_gemm", us=600)


def _free(b: TraceBuilder, frees: int = 4) -> None:
    b.synchronize()
    for _ in range(frees):
        b.launch("cudaFree", us=300)


def positive_cache_is_emptied_each_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        _work(b, allocations=4)
        with b.frame(EMPTY_CACHE):
            _free(b)

    return on_device(body)


def positive_without_stacks() -> Trace:
    def body(b: TraceBuilder) -> None:
        _work(b, allocations=4)
        _free(b)

    return on_device(body, frames=())


def positive_amd() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.launch("hipMalloc", us=900)
        b.launch("hipFree", us=900)
        _work(b)

    return on_device(body, frames=())


def positive_recorded_collector() -> Trace:
    torch = pytest.importorskip("torch")
    x = torch.rand(64, 64)

    def step() -> None:
        torch.mm(x, x)
        gc.collect()

    return record(step)


def negative_cache_grows_in_the_first_step() -> Trace:
    allocations = iter([5, 0, 0, 0, 0, 0])
    return on_device(lambda b: _work(b, allocations=next(allocations)), steps=6)


def negative_once_in_six_steps() -> Trace:
    numbers = iter(range(6))

    def body(b: TraceBuilder) -> None:
        _work(b)
        if next(numbers) == 3:
            with b.frame(EMPTY_CACHE):
                _free(b)

    return on_device(body, steps=6)


def negative_nothing_is_freed() -> Trace:
    """The call is there, but the cache was empty: it takes a few microseconds."""

    def body(b: TraceBuilder) -> None:
        _work(b)
        b.call(EMPTY_CACHE, us=3)

    return on_device(body)
