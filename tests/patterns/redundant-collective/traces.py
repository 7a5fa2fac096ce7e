from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.patterns.one_process import gloo
from tests.patterns.ranks import Exchange, ddp_forward, play_ranks
from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

CALL = "torch/distributed/distributed_c10d.py(2806): all_reduce"


def _training(b: TraceBuilder, *, kernel_us: float = 200) -> Iterator[Exchange]:
    ddp_forward(b, (kernel_us, kernel_us))
    with b.frame("torch/_tensor.py(570): backward"):
        b.leaf("aten::convolution_backward", us=10, kernel="dgrad_engine", kernel_us=kernel_us)
        yield Exchange(us=60)


def _logged(b: TraceBuilder, *, elements: int = 1, us: float = 150) -> Iterator[Exchange]:
    with b.frame("train.py(12): reduce_mean"), b.frame(CALL):
        yield Exchange(us=us, elements=elements)


def positive_loss_and_accuracy_in_each_step() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        yield from _training(b)
        for _ in range(3):
            yield from _logged(b)

    return play_ranks(body, ranks=2)[0]


def positive_recorded() -> Trace:
    torch = pytest.importorskip("torch")
    net, images = torch.nn.Linear(8, 8), torch.rand(4, 8)
    with gloo():

        def step() -> None:
            loss = net(images).sum()
            loss.backward()
            for value in (loss.detach(), loss.detach() / 2):
                torch.distributed.all_reduce(value)

        return record(step)


def negative_once_in_many_steps() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        yield from _training(b)
        if step % 5 == 0:
            yield from _logged(b)

    return play_ranks(body, ranks=2, steps=10)[0]


def negative_features_of_all_ranks() -> Trace:
    # A contrastive loss trains on what it gathers.
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        yield from _training(b)
        yield from _logged(b, elements=256 * 128)

    return play_ranks(body, ranks=2)[0]


def negative_only_the_gradients() -> Trace:
    return play_ranks(lambda b, rank, step: _training(b), ranks=2)[0]


def negative_a_small_share_of_a_long_step() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        yield from _training(b, kernel_us=9000)
        yield from _logged(b, us=40)

    return play_ranks(body, ranks=2)[0]
