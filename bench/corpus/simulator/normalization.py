"""Batch, layer and group norm, and softmax: which kernels they run, and for how long."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, prod

from torchtraceap.analyzer.trace.model import Dims

from . import names
from .hardware import Hardware
from .kernels import Kernel, Plan
from .roofline import Roofline, moving_kernel
from .shapes import Call, is_channels_last


class NormalizingKernels:
    """Plans of normalising operators on one device."""

    def __init__(self, hardware: Hardware, roofline: Roofline) -> None:
        self._hardware = hardware
        self._roofline = roofline

    def plan(self, op: str, call: Call) -> Plan | None:
        """What an operator runs; None for those that do something else."""
        if op in ("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training"):
            return self._batch_norm(call, training="no_training" not in op and call.value(5) == "True")
        if op == "native_batch_norm_backward":
            return self._batch_norm_backward(call)
        if op == "native_layer_norm":
            return self._layer_norm(call)
        if op == "native_layer_norm_backward":
            return self._layer_norm_backward(call)
        if op in ("native_group_norm", "native_group_norm_backward"):
            return self._group_norm(call, backward=op.endswith("backward"))
        if op in ("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"):
            return self._softmax(op, call)
        return None

    def _batch_norm(self, call: Call, training: bool) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if len(sizes) < 2:
            return None
        moved = float(prod(sizes) * call.element_bytes(0))
        last = is_channels_last(sizes, call.stride(0))
        if dtype != "c10::BFloat16" and call.type(1) != "c10::BFloat16" and len(sizes) == 4:
            return self._library_batch_norm(sizes, dtype, moved, training, last)
        types = f"{dtype}, {dtype}, float"
        transform = "batch_norm_transform_input_channels_last_kernel" if last else "batch_norm_transform_input_kernel"
        width = ", 4>()" if last else ", true, int>()"
        apply = moving_kernel(self._roofline, f"void at::native::{transform}<{types}{width}", 2 * moved, 0.62, sizes)
        if not training:
            return Plan((apply,), host_us=8.0)
        collect = (
            "batch_norm_collect_statistics_channels_last_kernel" if last else "batch_norm_collect_statistics_kernel"
        )
        name = f"void at::native::{collect}<at::native::Var, {types}, int>()"
        first = (
            moving_kernel(self._roofline, name, moved, 0.33, sizes)
            if last
            else self._by_channel(name, moved, sizes, 850.0)
        )
        update = moving_kernel(
            self._roofline,
            "void at::native::(anonymous namespace)::unrolled_elementwise_kernel_for_multi_outputs<3, "
            "at::native::(anonymous "
            "namespace)::batch_norm_update_stats_and_invert(at::Tensor const&)::{lambda()#1}>()",
            40.0 * sizes[1],
            0.5,
            sizes[1],
        )
        return Plan((first, update, apply), host_us=11.0)

    def _library_batch_norm(self, sizes: Dims, dtype: str, moved: float, training: bool, last: bool) -> Plan:
        if self._hardware.is_amd:
            kernels = (moving_kernel(self._roofline, "MIOpenBatchNormFwdTrainSpatial", 3 * moved, 0.4, sizes),)
            if not training:
                kernels = (moving_kernel(self._roofline, "MIOpenBatchNormFwdInferSpatialEst", 2 * moved, 0.6, sizes),)
            return Plan(kernels, rename="aten::miopen_batch_norm", host_us=16.0)
        if not training:
            name = f"void cudnn::bn_fw_inf_1C11_kernel_NCHW<{dtype}, float, true, 1>()"
            return Plan(
                (moving_kernel(self._roofline, name, 2 * moved, 0.6, sizes),),
                rename="aten::cudnn_batch_norm",
                host_us=14.0,
            )
        kernel = "batchnorm_fwtr_nhwc_semiPersist" if last and dtype == "c10::Half" else "bn_fw_tr_1C11_kernel_NCHW"
        name = f"void cudnn::{kernel}<{dtype}, float, 512, true, 1>(cudnnTensorStruct, {dtype} const*, float*)"
        return Plan(
            (moving_kernel(self._roofline, name, 3 * moved, 0.6, sizes),), rename="aten::cudnn_batch_norm", host_us=16.0
        )

    def _batch_norm_backward(self, call: Call) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if len(sizes) < 2:
            return None
        moved = float(prod(sizes) * call.element_bytes(0))
        last = is_channels_last(sizes, call.stride(0))
        if dtype != "c10::BFloat16" and len(sizes) == 4:
            vendor = "miopen" if self._hardware.is_amd else "cudnn"
            name = f"void cudnn::bn_bw_1C11_kernel_new<{dtype}, float, float2, 512, true, 1>()"
            name = "MIOpenBatchNormBwdSpatial" if self._hardware.is_amd else name
            kernels = (moving_kernel(self._roofline, name, 5 * moved, 0.6, sizes),)
            return Plan(kernels, rename=f"aten::{vendor}_batch_norm_backward", host_us=16.0)
        types = f"{dtype}, {dtype}, float"
        if not last:
            name = f"void at::native::batch_norm_backward_kernel<{types}, int>()"
            return Plan((self._by_channel(name, 5 * moved, sizes, 330.0),), host_us=12.0)
        reduce = f"void at::native::batch_norm_backward_reduce_channels_last_kernel<4, {types}>()"
        apply = f"void at::native::batch_norm_backward_elemt_channels_last_kernel<4, {types}>()"
        kernels = (
            moving_kernel(self._roofline, reduce, 2 * moved, 0.45, sizes),
            moving_kernel(self._roofline, apply, 3 * moved, 0.6, sizes),
        )
        return Plan(kernels, host_us=14.0)

    def _by_channel(self, name: str, moved: float, sizes: Dims, per_us: float) -> Kernel:
        """A kernel with one block for each channel, which gets through `per_us` elements in a microsecond."""
        elements = prod(sizes) // sizes[1]
        waves = ceil(sizes[1] / (2 * self._hardware.units))
        pace = 1.0 if self._hardware.is_amd else 1.5
        in_blocks = 3.0 + waves * elements / (per_us * pace)
        together = moving_kernel(self._roofline, name, moved, 0.5, sizes)
        return replace(
            together, duration_us=max(together.duration_us, in_blocks), grid=(sizes[1], 1, 1), block=(512, 1, 1)
        )

    def _layer_norm(self, call: Call) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if not sizes:
            return None
        name = f"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<{dtype}, float>()"
        moved = 2.0 * prod(sizes) * call.element_bytes(0)
        return Plan((moving_kernel(self._roofline, name, moved, 0.5, sizes, extra_us=1.2),), host_us=12.0)

    def _layer_norm_backward(self, call: Call) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if not sizes:
            return None
        moved = float(prod(sizes) * call.element_bytes(0))
        data = f"void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<{dtype}, float>()"
        weights = (
            f"void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<{dtype}, "
            f"float, 32u, 1u, 32u, "
            "true, false, false>()"
        )
        kernels = (
            moving_kernel(self._roofline, data, 3 * moved, 0.5, sizes),
            moving_kernel(self._roofline, weights, 2 * moved, 0.3, sizes, extra_us=3.0),
        )
        return Plan(kernels, host_us=16.0)

    def _group_norm(self, call: Call, backward: bool) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if not sizes:
            return None
        moved = float(prod(sizes) * call.element_bytes(0))
        space = "void at::native::(anonymous namespace)::"
        if backward:
            kernels = (
                moving_kernel(
                    self._roofline, f"{space}ComputeInternalGradientsCUDAKernel<{dtype}>()", 2 * moved, 0.45, sizes
                ),
                moving_kernel(
                    self._roofline, f"{space}ComputeBackwardFusedParamsCUDAKernel<{dtype}>()", 4096.0, 0.3, sizes[1:2]
                ),
                moving_kernel(
                    self._roofline, names.strided(f"at::native::group_norm_backward<{dtype}>"), 3 * moved, 0.6, sizes
                ),
                moving_kernel(
                    self._roofline, f"{space}GammaBetaBackwardCUDAKernel1<{dtype}>()", 4096.0, 0.3, sizes[1:2]
                ),
            )
            return Plan(kernels, host_us=22.0)
        kernels = (
            moving_kernel(self._roofline, f"{space}RowwiseMomentsCUDAKernel<{dtype}>()", moved, 0.5, sizes),
            moving_kernel(self._roofline, f"{space}ComputeFusedParamsCUDAKernel<{dtype}>()", 4096.0, 0.3, sizes[1:2]),
            moving_kernel(
                self._roofline, names.strided(f"at::native::group_norm_forward<{dtype}>"), 2 * moved, 0.65, sizes
            ),
        )
        return Plan(kernels, host_us=18.0)

    def _softmax(self, op: str, call: Call) -> Plan | None:
        sizes, dtype = call.shape(0), names.element_of(call.type(0))
        if not sizes:
            return None
        backward = op.endswith("backward_data")
        length, is_log = sizes[-1], str("log" in op).lower()
        direction = "backward" if backward else "forward"
        if length <= 1024:
            bits = max(1, (length - 1).bit_length())
            name = (
                f"void (anonymous namespace)::softmax_warp_{direction}<{dtype}, "
                f"{dtype}, float, {bits}, {is_log}, false>()"
            )
        else:
            word = "SoftMaxBackward" if backward else "SoftMaxForward"
            name = f"void at::native::(anonymous namespace)::cunn_{word}<8, {dtype}, float, {dtype}>()"
        moved = (3.0 if backward else 2.0) * prod(sizes) * call.element_bytes(0)
        return Plan((moving_kernel(self._roofline, name, moved, 0.6, sizes),), host_us=6.0)
