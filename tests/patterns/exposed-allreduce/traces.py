from __future__ import annotations

from collections.abc import Iterator

from tests.patterns.ranks import Exchange, ddp_forward, play_ranks
from tests.patterns.scenes import V100, TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

FORWARD_US = (400, 400, 400)


def _backward(b: TraceBuilder, us: float) -> None:
    b.leaf("aten::convolution_backward", us=15, kernel="dgrad_engine", kernel_us=us)


def positive_last_bucket_takes_longer_than_backward() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        ddp_forward(b, FORWARD_US)
        _backward(b, 600)
        yield Exchange(us=2000)
        _backward(b, 600)
        yield Exchange(us=2000)

    return play_ranks(body, ranks=2)[0]


def positive_all_ranks_with_slow_network() -> list[Trace]:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        ddp_forward(b, FORWARD_US)
        _backward(b, 1500)
        yield Exchange(us=3000)

    return play_ranks(body, ranks=4, device=V100)


def negative_hidden_behind_backward() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        ddp_forward(b, FORWARD_US)
        for _ in range(3):
            _backward(b, 100)
            yield Exchange(us=900)
            _backward(b, 1200)

    return play_ranks(body, ranks=2)[0]


def negative_small_share_of_the_step() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        ddp_forward(b, (4000, 4000))
        _backward(b, 9000)
        yield Exchange(us=300)

    return play_ranks(body, ranks=2)[0]


def negative_waiting_for_one_late_rank_is_the_stragglers() -> list[Trace]:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        ddp_forward(b, FORWARD_US)
        _backward(b, 600 + 3000 * (rank == 3))
        yield Exchange(us=60)

    return play_ranks(body)
