from __future__ import annotations

from tests.patterns.one_process import norms_and_layers, record_training
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Category, Trace

GLOO_THREAD = 900
COPY_STREAM = 9


def _exchange(b: TraceBuilder, us: float, *, copies: bool = True) -> None:
    """A bucket goes through the host: copied there, exchanged on a thread of gloo's, copied back; the caller waits."""
    with b.op("c10d::allreduce_", us=20):
        pass
    with b.thread(GLOO_THREAD):
        if copies:
            _copy(b, "Memcpy DtoH (Device -> Pinned)", us / 8)
            b.synchronize("cudaStreamSynchronize", stream=COPY_STREAM)
        with b.annotation("gloo:all_reduce", us=us):
            pass
        if copies:
            _copy(b, "Memcpy HtoD (Pinned -> Device)", us / 8)


def _copy(b: TraceBuilder, name: str, us: float) -> None:
    b.device_work(Category.MEMCPY, name, us=us, launched=b.launch("cudaMemcpyAsync"), stream=COPY_STREAM)


def _step(b: TraceBuilder, exchange_us: float, *, copies: bool = True, kernel_us: float = 200) -> None:
    with b.frame("nn.Module: DistributedDataParallel_0"), b.annotation("DistributedDataParallel.forward", us=10):
        for _ in range(4):
            b.leaf("aten::conv2d", us=15, kernel="scudnn_128x64", kernel_us=kernel_us)
    with b.frame("torch/_tensor.py(570): backward"):
        for _ in range(4):
            b.leaf("aten::convolution_backward", us=15, kernel="dgrad_engine", kernel_us=kernel_us)
        b.synchronize("cudaStreamSynchronize", stream=7)
        _exchange(b, exchange_us, copies=copies)


def positive_gradients_through_the_host() -> Trace:
    return on_device(lambda b: _step(b, 4000))


def positive_two_buckets() -> Trace:
    def step(b: TraceBuilder) -> None:
        _step(b, 1500)
        _exchange(b, 1500)

    return on_device(step)


def negative_numbers_of_the_host() -> Trace:
    # A second group of gloo's for objects: nothing of it is on the device.
    return on_device(lambda b: _step(b, 4000, copies=False))


def negative_nccl() -> Trace:
    def step(b: TraceBuilder) -> None:
        b.leaf("aten::conv2d", us=15, kernel="scudnn_128x64", kernel_us=400)
        with b.op("c10d::allreduce_", us=20):
            b.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", us=300, stream=20)
        _exchange(b, 100)

    return on_device(step)


def negative_training_on_the_cpu() -> Trace:
    return record_training(norms_and_layers(3))
