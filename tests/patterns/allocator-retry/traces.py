from dataclasses import replace

import numpy as np

from tests.patterns.scenes import A100, TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import MemoryTable, Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"


def _layers(b: TraceBuilder, count: int = 10) -> None:
    for _ in range(count):
        b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=100)


def _memory_call(b: TraceBuilder, name: str, *, us: float) -> None:
    with b.op("aten::empty", us=5):
        b.launch(name, us=us)


def _retry(b: TraceBuilder) -> None:
    _layers(b)
    _memory_call(b, "cudaFree", us=400)
    _memory_call(b, "cudaMalloc", us=300)
    _layers(b)


def positive_retry_with_stacks() -> Trace:
    return on_device(_retry)


def positive_reserved_near_total_without_stacks() -> Trace:
    trace = on_device(_retry, frames=())
    moments = trace.ts_ns[[0, len(trace) // 2]]
    held = np.array([int(0.97 * A100.total_memory_bytes)] * 2)
    ones = np.ones(2, dtype=np.int64)
    memory = MemoryTable(moments, ones, ones << 20, np.zeros(2, dtype=np.int32), held - (1 << 30), held)
    return replace(trace, memory=memory)


def positive_grows_in_every_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        _layers(b)
        _memory_call(b, "hipMalloc", us=500)

    return on_device(body)


def negative_first_steps_only() -> Trace:
    count = iter(range(100))

    def body(b: TraceBuilder) -> None:
        _layers(b)
        if next(count) == 0:
            _memory_call(b, "cudaMalloc", us=300)

    return on_device(body, steps=6)


def negative_cache_emptied_by_the_program() -> Trace:
    def body(b: TraceBuilder) -> None:
        _layers(b)
        with b.frame("torch/cuda/memory.py(170): empty_cache"), b.frame("<built-in function _cuda_emptyCache>"):
            b.launch("cudaFree", us=400)
        _memory_call(b, "cudaMalloc", us=300)

    return on_device(body)


def negative_frees_that_nothing_explains() -> Trace:
    """Neither stacks nor memory records: the program may empty the cache itself."""
    return on_device(_retry, frames=())


def negative_asynchronous_allocator() -> Trace:
    def body(b: TraceBuilder) -> None:
        _layers(b)
        _memory_call(b, "cudaMallocAsync", us=2)
        _memory_call(b, "cudaFreeAsync", us=2)

    return on_device(body)
