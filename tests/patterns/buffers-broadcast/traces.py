from __future__ import annotations

from collections.abc import Iterator

from tests.patterns.one_process import norms_and_layers, record_training
from tests.patterns.ranks import Exchange, play_ranks
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

BUFFERS = 60


def _sends(b: TraceBuilder, *, broadcast_us: float = 40) -> None:
    """What the wrapper does before the model's forward, as Kineto writes it without stacks."""
    with b.op("aten::flatten_dense_tensors", us=20):
        for _ in range(BUFFERS):
            b.leaf("aten::view", us=4)
        b.leaf("aten::cat", us=20, kernel="CatArrayBatchedCopy", kernel_us=4)
    with b.op("c10d::broadcast_", us=20), b.op("record_param_comms", us=20):
        b.kernel("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", us=broadcast_us, stream=20)
    with b.op("aten::unflatten_dense_tensors", us=20):
        for _ in range(BUFFERS):
            b.leaf("aten::narrow", us=4)
    for _ in range(BUFFERS):
        b.leaf("aten::copy_", us=8, kernel="direct_copy_kernel_cuda", kernel_us=2)


def _trains(b: TraceBuilder, *, sends: bool, layers: int = 20, kernel_us: float = 30) -> None:
    with b.frame("nn.Module: DistributedDataParallel_0"), b.annotation("DistributedDataParallel.forward", us=30):
        if sends:
            _sends(b)
        for _ in range(layers):
            b.leaf("aten::conv2d", us=30, kernel="scudnn_128x64", kernel_us=kernel_us)
    with b.op("c10d::allreduce_", us=20):
        b.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", us=50, stream=20)


def positive_device_waits_for_the_host() -> Trace:
    return on_device(lambda b: _trains(b, sends=True))


def positive_recorded() -> Trace:
    return record_training(norms_and_layers(6), gradient_as_bucket_view=True)


def negative_what_waits_for_a_late_rank_would_wait_later() -> list[Trace]:
    # The broadcast takes long, as rank 1 comes late to it: its loader is slow.
    def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
        b.host(6000.0 * (rank == 1))
        with b.frame("nn.Module: DistributedDataParallel_0"), b.annotation("DistributedDataParallel.forward", us=30):
            yield Exchange("broadcast", us=20, elements=53)
            b.leaf("aten::conv2d", us=30, kernel="scudnn_128x64", kernel_us=9000)
        with b.frame("torch/_tensor.py(570): backward"):
            b.leaf("aten::convolution_backward", us=15, kernel="dgrad_engine", kernel_us=9000)
            yield Exchange(us=100)

    return play_ranks(body, ranks=2)


def negative_no_broadcast() -> Trace:
    return on_device(lambda b: _trains(b, sends=False))


def negative_device_is_busy_all_along() -> Trace:
    return on_device(lambda b: _trains(b, sends=True, layers=80, kernel_us=3000))


def negative_broadcast_of_the_program_itself() -> Trace:
    def step(b: TraceBuilder) -> None:
        # The learning rate of rank 0, outside of the wrapped model.
        with b.op("c10d::broadcast_", us=20):
            b.kernel("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgs)", us=400, stream=20)
        _trains(b, sends=False)

    return on_device(step)


def negative_recorded_without_buffers() -> Trace:
    return record_training(norms_and_layers(6), forward_sync_buffers=False)
