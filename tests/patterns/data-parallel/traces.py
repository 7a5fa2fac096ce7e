from __future__ import annotations

from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Category, Trace


def _on(b: TraceBuilder, device: int, name: str, us: float) -> None:
    b.device_work(Category.KERNEL, name, us=us, launched=b.launch(), stream=7 + device, device=device)


def _step(b: TraceBuilder, *, devices: int, copy_us: float, forward_us: float, frames: bool = True) -> None:
    """A training step of `nn.DataParallel`, as the profiler shows it, every device's work from one process."""
    with b.frame("nn.Module: DataParallel_0" if frames else "net.py(3): forward"):
        if devices > 1:
            with b.op("Scatter", us=30):
                b.copy("DtoD", us=20)
            with b.op("Broadcast", us=copy_us):
                for device in range(devices):
                    _on(b, device, "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgs)", 40)
        for device in range(devices):
            for _ in range(4):
                with b.op("aten::conv2d", us=30):
                    _on(b, device, "scudnn_128x64", forward_us)
        if devices > 1:
            with b.op("Gather", us=30):
                b.copy("DtoD", us=10)
    with b.frame("torch/_tensor.py(570): backward"):
        if devices > 1:
            b.leaf("autograd::engine::evaluate_function: GatherBackward", us=20)
        for device in range(devices):
            with b.op("autograd::engine::evaluate_function: ConvolutionBackward0", us=60):
                _on(b, device, "dgrad_engine", 2 * forward_us)
        if devices > 1:
            with b.op("autograd::engine::evaluate_function: BroadcastBackward", us=copy_us):
                for device in range(devices):
                    _on(b, device, "ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 60)


def positive_two_devices() -> Trace:
    return on_device(lambda b: _step(b, devices=2, copy_us=400, forward_us=60))


def positive_without_stacks() -> Trace:
    return on_device(lambda b: _step(b, devices=4, copy_us=900, forward_us=30, frames=False), frames=())


def negative_one_device() -> Trace:
    return on_device(lambda b: _step(b, devices=1, copy_us=400, forward_us=60))


def negative_large_work_on_each_device() -> Trace:
    return on_device(lambda b: _step(b, devices=2, copy_us=50, forward_us=15_000))


def negative_two_devices_without_data_parallel() -> Trace:
    # Layers parted between devices by hand: nothing is broadcast.
    def step(b: TraceBuilder) -> None:
        for device in range(2):
            with b.op("aten::linear", us=20):
                _on(b, device, "ampere_sgemm_128x64", 300)

    return on_device(step)


def negative_cpu() -> Trace:
    return on_cpu(lambda b: b.leaf("aten::linear", us=500) and None)
