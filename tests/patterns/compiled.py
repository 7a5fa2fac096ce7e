"""Parts of traces of compiled code, as PyTorch 2.13 writes them."""

from __future__ import annotations

from .scenes import TraceBuilder

KERNEL = "triton_poi_fused_add_gelu_0"
GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn"


def compilation(b: TraceBuilder, *, us: float) -> None:
    """What happens when the guards of every version fail."""
    with b.frame("torch/_dynamo/convert_frame.py(1350): _compile"), b.op("_compile.compile_inner (dynamo_timed)"):
        b.leaf("bytecode_tracing (dynamo_timed)", us=us / 2)
        b.leaf("backend_compile", us=us / 2)


def region(b: TraceBuilder, number: str = ": 0/0", *, kernels: int = 12, us: float = 20, kernel_us: float = 4) -> None:
    """A compiled region that launches its kernels one by one."""
    b.leaf("TorchDynamo Cache Lookup", us=30)
    with b.op(f"Torch-Compiled Region{number}", us=40), b.op("CompiledFunction", us=20):
        launches(b, kernels=kernels, us=us, kernel_us=kernel_us)


def launches(b: TraceBuilder, *, kernels: int, us: float = 20, kernel_us: float = 4) -> None:
    """Kernels launched from Python by the code that inductor writes."""
    for number in range(kernels):
        b.host(us)
        b.kernel(GEMM if number % 3 == 0 else KERNEL, us=kernel_us)
