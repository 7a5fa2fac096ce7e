"""DistributedDataParallel's reducer: gradients gather in buckets, and each full bucket is reduced while backward goes on."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from . import names
from .kernels import Kernel, Queue, Work
from .shapes import Call

if TYPE_CHECKING:
    from .program import Program

_FIRST_BUCKET_BYTES = 1 << 20


class Reducer:
    """Fills buckets in the order in which gradients come."""

    def __init__(self, ranks: int, bucket_bytes: int) -> None:
        self._ranks = ranks
        self._bucket_bytes = bucket_bytes
        self._filled = 0
        self._is_first = True
        self._parameters: list[int] = []
        self._ends: list[float] = []

    def ready(self, host: Program, call: Call) -> None:
        """A gradient is there: it is scaled into its bucket."""
        size = prod(call.shape(0)) * call.element_bytes(0)
        duration = 2.0 + 2.0 * size / (host.hardware.device.memory_gb_per_s * 700)
        functor = "at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"
        self._run(host, "aten::mul", Kernel(names.vectorized(functor, 2, "float"), duration, call=self._call(host)))
        self._filled += size
        self._parameters.append(size)
        if self._filled >= (_FIRST_BUCKET_BYTES if self._is_first else self._bucket_bytes):
            self._reduce(host)

    def finish(self, host: Program) -> None:
        """Backward is over: the rest is reduced, and the compute stream waits and takes the gradients out."""
        if self._filled:
            self._reduce(host)
        for end in self._ends:
            host.runtime(host.call_name("StreamWaitEvent"), 0.9)
            host.device.hold(Queue.COMPUTE, end)
        copy = "hipMemcpyWithStream" if host.hardware.is_amd else "cudaMemcpyAsync"
        for size in self._parameters:
            duration = 1.5 + 2.0 * size / (host.hardware.device.memory_gb_per_s * 700)
            kernel = Kernel("Memcpy DtoD (Device -> Device)", duration, work=Work.MEMCPY, call=copy, bytes=size)
            self._run(host, "aten::copy_", kernel)
        self._is_first, self._parameters, self._ends = True, [], []

    def _reduce(self, host: Program) -> None:
        self._ends.append(host.reduce(self._filled, self._ranks))
        self._filled, self._is_first = 0, False

    def _call(self, host: Program) -> str:
        return "hipLaunchKernel" if host.hardware.is_amd else "cudaLaunchKernel"

    def _run(self, host: Program, operator: str, kernel: Kernel) -> None:
        event = host.synthetic(operator)
        assert event.args and isinstance(event.args.external_id, int)
        host.spend(3.0)
        host.launch(kernel, external_id=event.args.external_id)
        host.spend(1.0)
        host.close(event)
