from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
PAGEABLE = "HtoD (Pageable -> Device)"


def _train(b: TraceBuilder, kind: str = PAGEABLE, *, us: float = 8000, size: int = 38 << 20) -> None:
    with b.op("aten::to"), b.op("aten::_to_copy"), b.op("aten::copy_"):
        b.copy(kind, us=us, size_bytes=size)
    for _ in range(10):
        b.leaf("aten::linear", us=60, kernel=GEMM, kernel_us=2000)


def positive_batch_from_pageable_memory() -> Trace:
    return on_device(_train)


def positive_size_not_recorded() -> Trace:
    return on_device(lambda b: _train(b, size=-1))


def negative_pinned() -> Trace:
    return on_device(lambda b: _train(b, "HtoD (Pinned -> Device)"))


def negative_small_constants() -> Trace:
    return on_device(lambda b: _train(b, us=5, size=256))


def negative_cpu() -> Trace:
    return on_cpu(lambda b: b.leaf("aten::copy_", us=4000) and None)
