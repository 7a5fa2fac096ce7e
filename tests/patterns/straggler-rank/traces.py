from __future__ import annotations

from collections.abc import Iterator

from tests.patterns.ranks import Exchange, ddp_forward, play_ranks
from tests.patterns.scenes import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

FORWARD_US = (400, 400, 400)


def _backward(b: TraceBuilder, us: float) -> None:
    b.leaf("aten::convolution_backward", us=15, kernel="dgrad_engine", kernel_us=us)


def _step(b: TraceBuilder, extra_us: float) -> Iterator[Exchange]:
    ddp_forward(b, FORWARD_US)
    _backward(b, 800 + extra_us)
    yield Exchange(us=150)
    _backward(b, 800)
    yield Exchange(us=150)


def positive_one_of_four_computes_longer() -> list[Trace]:
    return play_ranks(lambda b, rank, step: _step(b, 900.0 * (rank == 3)))


def positive_clocks_of_the_ranks_disagree() -> list[Trace]:
    clocks = (0.0, 7_000_000.0, 12.5, 300_000.0)
    return play_ranks(lambda b, rank, step: _step(b, 900.0 * (rank == 1)), clock_us=clocks)


def positive_one_rank_loads_slowly() -> list[Trace]:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        with b.annotation(
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", us=2500 if rank == 2 else 50
        ):
            pass
        yield from _step(b, 0.0)

    return play_ranks(body, ranks=8)


def positive_the_reported_rank_itself_is_late() -> list[Trace]:
    return play_ranks(lambda b, rank, step: _step(b, 900.0 * (rank == 0)))


def positive_one_rank_in_forward_another_in_backward() -> list[Trace]:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        with b.frame("nn.Module: Experts_0"):
            b.leaf("aten::conv2d", us=10, kernel="scudnn_128x64", kernel_us=500 + 700 * (rank == 1))
            yield Exchange("all_to_all", us=80)
            b.synchronize()
            b.leaf("aten::conv2d", us=10, kernel="scudnn_128x64", kernel_us=500)
        with b.frame("torch/_tensor.py(570): backward"):
            _backward(b, 800 + 700 * (rank == 3))
            yield Exchange(us=150)

    return play_ranks(body)


def negative_another_rank_is_late_in_each_step() -> list[Trace]:
    return play_ranks(lambda b, rank, step: _step(b, 900.0 * (rank == step % 4)))


def negative_two_ranks_late_by_turns_in_each_step() -> list[Trace]:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        ddp_forward(b, FORWARD_US)
        for bucket in range(6):
            _backward(b, 400 + 300 * (rank == bucket % 2))
            yield Exchange(us=100)
            b.synchronize()  # as a layer that waits for the result does

    return play_ranks(body, ranks=2)


def negative_one_slow_step_of_many() -> list[Trace]:
    return play_ranks(lambda b, rank, step: _step(b, 900.0 * (rank == 3 and step == 2)), steps=6)


def negative_ranks_alike_with_slow_communication() -> list[Trace]:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        ddp_forward(b, FORWARD_US)
        _backward(b, 800)
        yield Exchange(us=4000)

    return play_ranks(body)


def negative_one_rank_alone_says_nothing() -> Trace:
    # Rank 1 is 200 ms slower in its backward pass; every rank's own trace shows the same long one.
    return play_ranks(lambda b, rank, step: _step(b, 200_000.0 * (rank == 1)))[0]
