"""Two GPUs driven by one process: the model goes out in every step, gradients are summed on the first GPU."""

from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Category, Trace

DEVICES = 2


def _on(b: TraceBuilder, device: int, name: str, us: float) -> None:
    b.device_work(Category.KERNEL, name, us=us, launched=b.launch(), stream=7 + device, device=device)


def _forward(b: TraceBuilder) -> None:
    with b.frame("nn.Module: DataParallel_0"), b.frame("torch/nn/parallel/data_parallel.py(172): forward"):
        with b.frame("torch/nn/parallel/scatter_gather.py(88): scatter_kwargs"), b.op("Scatter", us=60):
            b.copy("DtoD", us=40)
        with b.frame("torch/nn/parallel/replicate.py(95): replicate"), b.op("Broadcast", us=350):
            for device in range(DEVICES):
                _on(b, device, "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 60)
        for device in range(DEVICES):
            with b.thread(50 + device), b.frame("nn.Module: Cell_0"), b.frame("source.py(15): forward"):
                for _ in range(4):
                    with b.op("aten::conv2d", us=40):
                        _on(b, device, "scudnn_128x64_relu_interior_nn_v1", 150)
        with b.frame("torch/nn/parallel/scatter_gather.py(128): gather"), b.op("Gather", us=60):
            b.copy("DtoD", us=20)


def _backward(b: TraceBuilder) -> None:
    with b.frame("torch/_tensor.py(570): backward"):
        b.leaf("autograd::engine::evaluate_function: GatherBackward", us=40)
        for device in range(DEVICES):
            for _ in range(4):
                with b.op("autograd::engine::evaluate_function: ConvolutionBackward0", us=60):
                    _on(b, device, "cudnn_dgrad_engine", 300)
        with b.op("autograd::engine::evaluate_function: BroadcastBackward", us=300):
            for device in range(DEVICES):
                _on(b, device, "ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 90)


def _step(b: TraceBuilder) -> None:
    _forward(b)
    b.leaf("aten::mean", us=15, kernel="reduce_kernel", kernel_us=8)
    b.leaf("aten::cross_entropy_loss", us=30, kernel="nll_loss_forward_reduce_cuda_kernel_2d", kernel_us=8)
    _backward(b)
    with b.frame("torch/optim/optimizer.py(480): wrapper"), b.annotation("Optimizer.step#SGD.step", us=20):
        b.leaf("aten::_foreach_add_", us=20, kernel="multi_tensor_apply_kernel", kernel_us=20)
    b.call("torch/optim/optimizer.py(950): zero_grad", us=20)


def build() -> Trace:
    """Four steps."""
    return on_device(_step, frames=("source.py(19): train",))
