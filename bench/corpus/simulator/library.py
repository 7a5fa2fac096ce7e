"""What the vendors' libraries have in common: which arithmetic they use, and how their kernels are launched."""

from __future__ import annotations

from torchtraceap.analyzer.timeline.kernel_names import Precision

from .hardware import Hardware
from .kernels import Kernel, Work
from .settings import JobSettings

HALF = ("c10::Half", "c10::BFloat16")


class Library:
    """A vendor's libraries on one device, as a job has set them."""

    def __init__(self, hardware: Hardware, settings: JobSettings) -> None:
        self._tf32 = settings.tf32 and hardware.device.has_tf32
        self._library_call = "hipExtModuleLaunchKernel" if hardware.is_amd else "cudaLaunchKernel"
        self._launch_call = hardware.launch_call

    def precision(self, dtype: str) -> Precision:
        """The arithmetic of a type: fp32 is computed in TF32 where the device has it and the job allows it."""
        if dtype in HALF:
            return Precision.HALF
        if dtype == "double":
            return Precision.FP64
        return Precision.TF32 if self._tf32 else Precision.FP32

    def kernel(
        self,
        name: str,
        duration_us: float,
        blocks: int,
        *,
        registers: int = 32,
        shared: int = 0,
        block: int = 128,
        library: bool = False,
    ) -> Kernel:
        """A kernel of so many blocks, launched by a library or by PyTorch itself."""
        call = self._library_call if library else self._launch_call
        if name.startswith("nvjet"):
            call = "cudaLaunchKernelExC"
        return Kernel(name, duration_us, (max(1, blocks), 1, 1), (block, 1, 1), registers, shared, Work.KERNEL, call)
