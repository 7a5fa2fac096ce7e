from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
PINNED = "HtoD (Pinned -> Device)"


def _send(b: TraceBuilder, kind: str = PINNED, *, wait: bool = True, us: float = 1500) -> None:
    with b.op("aten::to"), b.op("aten::_to_copy"), b.op("aten::copy_"):
        b.copy(kind, us=us, size_bytes=32 << 20)
        if wait:
            b.synchronize("cudaStreamSynchronize", stream=7)


def _layers(b: TraceBuilder, count: int = 40, *, us: float = 80, kernel_us: float = 60) -> None:
    for _ in range(count):
        b.leaf("aten::linear", us=us, kernel=GEMM, kernel_us=kernel_us)


def positive_waits_for_each_batch() -> Trace:
    def body(b: TraceBuilder) -> None:
        _send(b)
        _layers(b)

    return on_device(body)


def positive_waits_in_the_middle() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(4):
            _layers(b, 10)
            _send(b, us=400)

    return on_device(body)


def negative_non_blocking() -> Trace:
    def body(b: TraceBuilder) -> None:
        _send(b, wait=False)
        _layers(b)

    return on_device(body)


def negative_pageable() -> Trace:
    """A pageable copy holds the host in any case: `non_blocking=True` alone would change nothing."""

    def body(b: TraceBuilder) -> None:
        _send(b, "HtoD (Pageable -> Device)")
        _layers(b)

    return on_device(body)


def negative_small_copy_in_a_long_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        _send(b, us=20)
        _layers(b, kernel_us=3000)

    return on_device(body)
