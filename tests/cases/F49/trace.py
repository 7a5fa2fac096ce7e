"""A deep encoder on a fast GPU: the host walks its graph in every step, and every parameter has a gradient."""

from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

WEIGHT = (256, 256)
LAYERS = 30
GEMM = "ampere_sgemm_128x64_tn"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _forward(b: TraceBuilder) -> None:
    with b.frame("nn.Module: DistributedDataParallel_0"), b.annotation("DistributedDataParallel.forward", us=20):
        with b.frame("nn.Module: Encoder_0"), b.frame("source.py(17): forward"):
            for _ in range(LAYERS):
                b.leaf("aten::linear", us=20, kernel=GEMM, kernel_us=12)
        with b.frame("torch/nn/parallel/distributed.py(1508): _find_tensors", us=30):
            pass
        b.leaf("torch.distributed.ddp.reducer::search_unused_parameters", us=180)
        b.leaf("_DDPSink", us=60)


def _backward(b: TraceBuilder) -> None:
    with b.frame("torch/_tensor.py(570): backward"):
        b.leaf("autograd::engine::evaluate_function: _DDPSinkBackward", us=60)
        for _ in range(LAYERS):
            b.leaf("aten::mm", us=25, kernel=GEMM, kernel_us=20)
            b.leaf("torch::distributed::reducer::mul_out", us=10, kernel="elementwise_kernel", shapes=[WEIGHT])
        for elements in (LAYERS * WEIGHT[0] * WEIGHT[1], LAYERS):
            with b.op("c10d::allreduce_", us=20, shapes=[((elements,),)]):
                b.kernel(ALL_REDUCE, us=30, stream=20)


def _step(b: TraceBuilder) -> None:
    _forward(b)
    b.call("<built-in function criterion>", us=10)
    _backward(b)
    with b.frame("torch/optim/optimizer.py(480): wrapper"), b.annotation("Optimizer.step#SGD.step", us=20):
        b.leaf("aten::_foreach_add_", us=20, kernel="multi_tensor_apply_kernel", kernel_us=20)
    b.call("torch/optim/optimizer.py(950): zero_grad", us=20)


def build() -> Trace:
    """Four steps of rank 0."""
    return on_device(_step, frames=("source.py(21): main",))
