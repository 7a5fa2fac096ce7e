from tests.patterns.compiled import launches, region
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

FRAMES = ("train.py(40): main", "nn.Module: OptimizedModule_0")
ITEM = "<built-in method item of Tensor object at 0x7f43>"


def _broken(b: TraceBuilder, *, frames: bool = True, kernels: int = 20) -> None:
    """`forward` is left at `.item()` in line 9, as PyTorch nests it."""
    b.leaf("TorchDynamo Cache Lookup", us=60)
    with b.op("Torch-Compiled Region: 0/0", us=30), b.frame("net.py(7): forward"):
        launches(b, kernels=kernels, us=5)
        if frames:
            with b.frame(ITEM):
                b.item()
        else:
            b.item()
        b.leaf("TorchDynamo Cache Lookup", us=60)
        with b.op("Torch-Compiled Region: 1/0", us=30):
            if frames:
                with b.frame("net.py(9): torch_dynamo_resume_in_forward_at_9"):
                    launches(b, kernels=kernels, us=5)
            else:
                launches(b, kernels=kernels, us=5)


def positive_item_within_forward() -> Trace:
    return on_device(_broken, frames=FRAMES)


def positive_without_resumed_frames() -> Trace:
    return on_device(lambda b: _broken(b, frames=False), frames=())


def positive_one_per_block() -> Trace:
    """Every block of the model reads lengths on the host."""
    return on_device(lambda b: [_broken(b, kernels=8) for _ in range(4)] and None, frames=FRAMES)


def negative_one_graph() -> Trace:
    return on_device(lambda b: region(b, kernels=40, kernel_us=30), frames=FRAMES)


def negative_two_compiled_functions() -> Trace:
    """One after the other, and the loss is read between them: no graph is broken."""

    def body(b: TraceBuilder) -> None:
        region(b, ": 0/0", kernels=20, kernel_us=30)
        b.item()
        region(b, ": 1/0", kernels=20, kernel_us=30)

    return on_device(body, frames=("train.py(40): main",))
