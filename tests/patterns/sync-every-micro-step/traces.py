from __future__ import annotations

from collections.abc import Iterator

from tests.patterns.one_process import norms_and_layers, record_training
from tests.patterns.ranks import Exchange, ddp_forward, play_ranks
from tests.patterns.scenes import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace


def _micro_step(
    b: TraceBuilder, *, exchange_us: float, elements: int = 1 << 20, is_exchanged: bool = True, hidden: bool = False
) -> Iterator[Exchange]:
    ddp_forward(b, (300, 300))
    with b.frame("torch/_tensor.py(570): backward"):
        b.leaf("aten::convolution_backward", us=10, kernel="dgrad_engine", kernel_us=300)
        if is_exchanged:
            yield Exchange(us=exchange_us, elements=elements)
        b.leaf("aten::convolution_backward", us=10, kernel="dgrad_engine", kernel_us=2500 if hidden else 100)


def _optimizer(b: TraceBuilder) -> None:
    with b.annotation("Optimizer.step#SGD.step", us=20):
        b.leaf("aten::_foreach_add_", us=20, kernel="multi_tensor_apply_kernel", kernel_us=30)


def positive_four_micro_batches() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        for _ in range(4):
            yield from _micro_step(b, exchange_us=900)
            b.synchronize()
        _optimizer(b)

    return play_ranks(body, ranks=2)[0]


def positive_profiler_step_for_each_micro_batch() -> list[Trace]:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        yield from _micro_step(b, exchange_us=900)
        if step % 4 == 3:
            _optimizer(b)

    return play_ranks(body, ranks=2, steps=12)


def negative_last_micro_batch_only() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        for i in range(4):
            yield from _micro_step(b, exchange_us=900, is_exchanged=i == 3)
        _optimizer(b)

    return play_ranks(body, ranks=2)[0]


def negative_hidden_behind_the_backward_pass() -> Trace:
    # Two GPUs in one machine: the exchange is done before the backward pass is.
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        for _ in range(4):
            yield from _micro_step(b, exchange_us=500, hidden=True)
            b.synchronize()
        _optimizer(b)

    return play_ranks(body, ranks=2)[0]


def negative_two_models_with_an_optimizer_each() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        for _ in range(2):
            yield from _micro_step(b, exchange_us=900)
            _optimizer(b)

    return play_ranks(body, ranks=2)[0]


def negative_two_models_one_optimizer() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        for elements in (1 << 20, 1 << 16):
            yield from _micro_step(b, exchange_us=900, elements=elements)
        _optimizer(b)

    return play_ranks(body, ranks=2)[0]


def negative_recorded_plain_training() -> Trace:
    return record_training(norms_and_layers(6))
