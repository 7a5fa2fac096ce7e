from __future__ import annotations

from collections.abc import Iterator

from tests.patterns.ranks import Exchange, play_ranks
from tests.patterns.scenes import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

CHANNELS = 64
LAYERS = 30


def _layers(
    b: TraceBuilder, *, batch: int, count: int = LAYERS, kernel_us: float = 20, each: int = 1
) -> Iterator[Exchange]:
    shape = (batch, CHANNELS, 28, 28)
    with b.frame("nn.Module: MobileNetV2_0"):
        for _ in range(count):
            b.leaf("aten::conv2d", us=10, kernel="scudnn_128x64", kernel_us=kernel_us)
            b.leaf("aten::batch_norm_stats", us=10, kernel="batch_norm_collect_statistics", kernel_us=5, shapes=[shape])
            for _ in range(each):
                yield Exchange("all_gather", us=35, elements=2 * CHANNELS + 1)
            b.leaf("aten::batch_norm_elemt", us=10, kernel="batch_norm_transform_input", kernel_us=5, shapes=[shape])
    with b.frame("torch/_tensor.py(570): backward"):
        for _ in range(count):
            b.leaf("aten::batch_norm_backward_reduce", us=10, kernel="batch_norm_backward_reduce", kernel_us=5)
            yield Exchange("all_reduce", us=35, elements=2 * CHANNELS)
            b.leaf("aten::convolution_backward", us=10, kernel="dgrad_engine", kernel_us=2 * kernel_us)


def positive_every_layer_of_a_small_net() -> Trace:
    return play_ranks(lambda b, rank, step: _layers(b, batch=32), ranks=2)[0]


def positive_three_collectives_for_each_layer() -> Trace:
    return play_ranks(lambda b, rank, step: _layers(b, batch=64, each=3), ranks=2)[0]


def negative_small_batches_need_it() -> Trace:
    return play_ranks(lambda b, rank, step: _layers(b, batch=2), ranks=2)[0]


def negative_few_layers() -> Trace:
    return play_ranks(lambda b, rank, step: _layers(b, batch=32, count=5), ranks=2)[0]


def negative_gradients_in_many_small_buckets() -> Trace:
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        with b.frame("nn.Module: DistributedDataParallel_0"):
            b.leaf("aten::conv2d", us=10, kernel="scudnn_128x64", kernel_us=500)
        with b.frame("torch/_tensor.py(570): backward"):
            for _ in range(LAYERS):
                b.leaf("aten::convolution_backward", us=10, kernel="dgrad_engine", kernel_us=40)
                yield Exchange(us=35, elements=4096)

    return play_ranks(body, ranks=2)[0]
