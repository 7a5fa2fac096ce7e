from __future__ import annotations

from tests.patterns.one_process import norms_and_layers, record_training
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

COPY_IN = "torch::distributed::reducer::mul_out"
COPY_OUT = "torch.distributed.ddp.reducer::copy_bucket_to_grad"


def _backward(b: TraceBuilder, *, parameters: int, copies_out: bool, kernel_us: float, copy_us: float) -> None:
    with b.frame("nn.Module: DistributedDataParallel_0"), b.annotation("DistributedDataParallel.forward", us=10):
        b.leaf("aten::linear", us=20, kernel="sgemm", kernel_us=kernel_us)
    with b.frame("torch/_tensor.py(570): backward"):
        for _ in range(parameters):
            b.leaf("aten::mm", us=10, kernel="sgemm", kernel_us=kernel_us)
            b.leaf(COPY_IN, us=8, kernel="elementwise_kernel", kernel_us=copy_us)
        with b.op("c10d::allreduce_", us=20):
            b.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", us=50, stream=20)
        for _ in range(parameters if copies_out else 0):
            with b.op(COPY_OUT, us=6):
                b.leaf("aten::copy_", us=10, kernel="Memcpy DtoD", kernel_us=copy_us)


def positive_large_layers() -> Trace:
    # A language model's projections: few kernels, and copies of whole weight matrices.
    return on_device(lambda b: _backward(b, parameters=20, copies_out=True, kernel_us=200, copy_us=80))


def positive_many_small_parameters() -> Trace:
    return on_device(lambda b: _backward(b, parameters=150, copies_out=True, kernel_us=5, copy_us=2))


def negative_views_of_the_buckets() -> Trace:
    return on_device(lambda b: _backward(b, parameters=150, copies_out=False, kernel_us=5, copy_us=2))


def negative_convolutions_take_longer() -> Trace:
    # Copies of a convolutional net's gradients, under one per cent of the step.
    return on_device(lambda b: _backward(b, parameters=60, copies_out=True, kernel_us=900, copy_us=2))


def negative_recorded_with_views() -> Trace:
    return record_training(norms_and_layers(6), gradient_as_bucket_view=True)
