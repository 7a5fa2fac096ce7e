"""Kernel names as the vendors' libraries and PyTorch give them, by architecture and data type."""

from __future__ import annotations

from torchtraceap.analyzer.timeline.kernel_names import Precision

from .hardware import Hardware

ELEMENT = {
    "float": "float",
    "double": "double",
    "c10::Half": "c10::Half",
    "c10::BFloat16": "c10::BFloat16",
    "long": "long",
    "long int": "long",
    "int": "int",
    "bool": "bool",
    "unsigned char": "unsigned char",
}
_CUDA_ELEMENT = {"c10::Half": "__half", "c10::BFloat16": "__nv_bfloat16"}
_AT = "at::native::"


def element_of(dtype: str) -> str:
    """The C++ type in kernel names."""
    return ELEMENT.get(dtype, "float")


def _short(dtype: str) -> str:
    return {"c10::Half": "f16", "c10::BFloat16": "bf16", "double": "f64"}.get(dtype, "f32")


def _word(dtype: str) -> str:
    return {"c10::Half": "fp16", "c10::BFloat16": "bf16", "double": "fp64"}.get(dtype, "fp32")


def vectorized(functor: str, operands: int, dtype: str) -> str:
    """An elementwise kernel over contiguous tensors."""
    width = 8 if dtype in ("c10::Half", "c10::BFloat16") else 4
    array = f"std::array<char*, {operands}ul>"
    return f"void {_AT}vectorized_elementwise_kernel<{width}, {functor}, {array} >(int, {functor}, {array})"


def strided(functor: str) -> str:
    """An elementwise kernel that computes each element's address: broadcast or not contiguous."""
    inner = f"{_AT}gpu_kernel_impl_nocast<{functor} >(at::TensorIteratorBase&, {functor} const&)::{{lambda(int)#1}}"
    return f"void {_AT}elementwise_kernel<128, 4, {inner}>(int, {inner})"


def unrolled(functor: str, operands: int) -> str:
    """An elementwise kernel that casts on the way, over contiguous tensors."""
    array = f"std::array<char*, {operands}ul>"
    offsets = f"TrivialOffsetCalculator<{operands - 1}, unsigned int>, TrivialOffsetCalculator<1, unsigned int>"
    return (
        f"void {_AT}unrolled_elementwise_kernel<{functor}, {array}, 4, {offsets}, "
        f"{_AT}memory::LoadWithCast<{operands - 1}>, {_AT}memory::StoreWithCast<1> >(int, {functor}, {array})"
    )


def reduction(operator: str, dtype: str, inner: bool) -> str:
    """A reduction over the last axis (`inner`) or over others."""
    shape = "512, 1" if inner else "128, 4"
    operation = f"{_AT}ReduceOp<{dtype}, {operator}, unsigned int, {dtype}, 4, 4>"
    return f"void {_AT}reduce_kernel<{shape}, {operation} >({operation})"


def gemm(
    hardware: Hardware,
    dtype: str,
    precision: Precision,
    tile: tuple[int, int],
    layout: str,
    aligned: bool,
    biased: bool,
) -> str:
    """A matrix product of cuBLAS or hipBLASLt. `layout`: "tn", "nn" or "nt"."""
    if hardware.is_amd:
        return _tensile(hardware, dtype, tile, layout, biased)
    rows, columns = tile
    architecture = hardware.architecture
    if dtype == "double":
        return f"{'ampere' if architecture == 'sm90' else architecture}_dgemm_64x64_{layout}"
    if precision is Precision.FP32:
        return f"{'ampere' if architecture == 'sm90' else architecture}_sgemm_{rows}x{columns}_{layout}"
    if precision is Precision.TF32:
        if not aligned:
            return _cutlass(f"cutlass_80_tensorop_s1688gemm_{rows}x{columns}_32x3_{layout}_align1")
        if architecture == "sm90":
            return f"nvjet_sss_{rows}x{columns}_32x6_1x1_v_{'bz_' if biased else ''}{layout.upper()}T"
        return f"ampere_tf32_s1688gemm_fp32_{rows}x{columns}_ldg4_stages_32x3_{layout}"
    word = _word(dtype)
    if architecture == "volta":
        return f"volta_{word}_s884gemm_{word}_{rows}x{columns}_ldg{8 if aligned else 1}_f2f_{layout}"
    if architecture == "turing":
        return f"turing_{word}_s1688gemm_{word}_{rows}x{columns}_ldg{8 if aligned else 1}_f2f_{layout}"
    if not aligned:
        return _cutlass(f"cutlass_80_wmma_tensorop_{word}_s161616gemm_{word}_32x32_64x2_{layout}_align1")
    if architecture == "sm90":
        letter = "t" if word == "bf16" else "h"
        return f"nvjet_{letter}s{letter}_{rows}x{columns}_64x4_1x2_h_{'bz_coopA' if biased else 'bz'}_{layout.upper()}T"
    return f"ampere_{word}_s16816gemm_{word}_{rows}x{columns}_ldg8_f2f_stages_64x3_{layout}"


def _cutlass(kernel: str) -> str:
    return f"void cutlass::Kernel2<{kernel}>({kernel}::Params)"


def _tensile(hardware: Hardware, dtype: str, tile: tuple[int, int], layout: str, biased: bool) -> str:
    types = {"c10::Half": "HHS_BH", "c10::BFloat16": "BBS_BH", "double": "DB"}.get(dtype, "S_B")
    indices = {"tn": "Cijk_Alik_Bljk", "nn": "Cijk_Ailk_Bljk", "nt": "Cijk_Ailk_Bjlk"}[layout]
    isa = "ISA942" if hardware.device.capability == (9, 4) else "ISA90a"
    bias = "_Bias_HAS_SAV_UserArgs" if biased else ""
    return (
        f"{indices}_{types}{bias}_MT{tile[0]}x{tile[1]}x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTVA0_"
        f"DTVB0_EPS0_FDSI0_GRPM1_GRVWA8_GRVWB8_GSUAMB_GLS0_{isa}_IU1_K1_LBSPPA512_LBSPPB256_LPA16_LPB16_PGR2_PLR1_WG64_4_1"
    )


def split_reduction(dtype: str) -> str:
    """What adds the parts of a product that was cut along its inner dimension."""
    element = _CUDA_ELEMENT.get(dtype, dtype)
    return (
        f"void cublasLt::splitKreduce_kernel<32, 16, int, float, {element}, float, {element}, true, false, false>"
        f"(cublasLt::cublasSplitKParams<float>, float const*, {element} const*, {element}*, {element} const*, float*)"
    )


def convolution(
    hardware: Hardware,
    kind: str,
    dtype: str,
    precision: Precision,
    tile: tuple[int, int],
    aligned: bool,
    channels_last: bool,
) -> str:
    """An implicit-GEMM convolution. `kind`: "fprop", "dgrad" or "wgrad"."""
    rows, columns = tile
    if hardware.is_amd:
        return _miopen(hardware, kind, dtype, tile)
    architecture = hardware.architecture
    if precision is Precision.FP32 or dtype == "double":
        return _plain_convolution(architecture, kind, tile)
    align = 8 if aligned else 2
    if precision is Precision.TF32:
        layout = "nhwc" if channels_last else "nchw"
        return (
            f"sm80_xmma_{kind}_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_{layout}_tilesize{rows}x{columns}x16_stage4_"
            f"warpsize2x2x1_g1_tensor16x8x8_alignc4_execute_kernel__5x_cudnn"
        )
    short, word = _short(dtype), _word(dtype)
    if architecture == "volta":
        return f"volta_{word}_s884cudnn_{word}_{rows}x{columns}_ldg8_{kind}_f2f_exp_small_nhwc_tn_v1"
    if architecture == "turing":
        return f"turing_{word}_s1688cudnn_{word}_{rows}x{columns}_ldg8_relu_f2f_exp_small_nhwc_tn_v1_{kind}"
    if architecture == "sm90" and aligned:
        return (
            f"sm90_xmma_{kind}_implicit_gemm_{short}{short}_{short}f32_f32_nhwckrsc_nhwc_tilesize{rows}x{columns}x64_"
            f"warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn"
        )
    if not aligned:
        kernel = f"cutlass_tensorop_{word}_s16816{kind}_optimized_{word}_{rows}x{columns}_32x4_nhwc_align{align}"
        return f"void cutlass__5x_cudnn::Kernel<{kernel}>({kernel}::Params)"
    return (
        f"sm80_xmma_{kind}_implicit_gemm_{short}{short}_{short}f32_f32_nhwckrsc_nhwc_tilesize{rows}x{columns}x32_stage4_"
        f"warpsize2x2x1_g1_tensor16x8x16_execute_kernel__5x_cudnn"
    )


def _plain_convolution(architecture: str, kind: str, tile: tuple[int, int]) -> str:
    if kind == "dgrad":
        return (
            "void cudnn::cnn::dgrad_engine<float, 512, 6, 5, 3, 3, 3, "
            "false>(int, int, int, float const*, int, float const*,"
            " int, float*, kernel_grad_params, unsigned long long, int, unsigned long long, int, float, int, int, int)"
        )
    if kind == "wgrad":
        return (
            "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, "
            "5, false, 512>(int, int, int, float const*, int,"
            " float*, float const*, kernel_grad_params, unsigned long long, int, float, int, int, int, int)"
        )
    word = "ampere" if architecture == "sm90" else architecture
    return f"{word}_scudnn_{max(tile[0], 64)}x{tile[1]}_relu_medium_nn_v1"


def _miopen(hardware: Hardware, kind: str, dtype: str, tile: tuple[int, int]) -> str:
    generation = "gtcx3" if hardware.device.capability == (9, 4) else "gtcx2"
    direction = {"fprop": "fwd", "dgrad": "bwd", "wgrad": "wrw"}[kind]
    word = _word(dtype)
    return (
        f"igemm_{direction}_{generation}_nhwc_{word}_bx0_ex1_bt{tile[0]}x{tile[1]}x32_wt32x32x8_ws1x1_wr2x2_"
        f"ta1x8x2x1_1x4x1x64_tb1x8x2x1_1x4x1x64_gkgs"
    )


def depthwise(hardware: Hardware, kind: str, dtype: str, channels_last: bool) -> str:
    """A depthwise convolution: PyTorch's own kernels channels first, the library's channels last."""
    element = element_of(dtype)
    if hardware.is_amd:
        return f"naive_conv_ab_nonpacked_{ {'fprop': 'fwd', 'dgrad': 'bwd', 'wgrad': 'wrw'}[kind] }_nchw_{_word(dtype)}"
    if channels_last:
        cuda = _CUDA_ELEMENT.get(element, element)
        verb = {"fprop": "fprop", "dgrad": "dgrad", "wgrad": "wgrad"}[kind]
        return f"void cudnn::cnn::conv2d_grouped_direct_kernel<{cuda}, {cuda}, float, {verb}, true, false, 0, 0, 0>()"
    verb = {"fprop": "forward", "dgrad": "backward", "wgrad": "grad_weight"}[kind]
    return f"void {_AT}(anonymous namespace)::conv_depthwise2d_{verb}_kernel<3, {element}, int>()"


def to_channels_last(hardware: Hardware, dtype: str) -> str:
    """The library's transposition before a convolution."""
    return _layout(hardware, dtype, "nchwToNhwcKernel", "batched_transpose_32x32_half", "nchw2nhwc")


def to_channels_first(hardware: Hardware, dtype: str) -> str:
    """The library's transposition after a convolution."""
    return _layout(hardware, dtype, "nhwcToNchwKernel", "batched_transpose_16x32_half", "nhwc2nchw")


def _layout(hardware: Hardware, dtype: str, kernel: str, amd: str, parameters: str) -> str:
    if hardware.is_amd:
        return amd
    cuda = _CUDA_ELEMENT.get(dtype, "float")
    return (
        f"void cudnn::ops::{kernel}<{cuda}, {cuda}, float, false, true, (cudnnKernelDataType_t)0>"
        f"(cudnn::ops::{parameters}_params_t<float>, {cuda} const*, {cuda}*)"
    )


def flash_forward(hardware: Hardware, dtype: str, head: int) -> str:
    """A fused attention kernel's forward."""
    if hardware.is_amd:
        return "attn_fwd"
    traits = f"{head}, 128, 128, 4, false, false, cutlass::{_cutlass_type(dtype)}"
    return (
        f"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<{traits}, "
        f"pytorch_flash::Flash_kernel_traits<{head}, 128, 128, 4, "
        f"cutlass::{_cutlass_type(dtype)}> >, false, false, false, "
        "false, false, true, false>(pytorch_flash::Flash_fwd_params)"
    )


def flash_backward(hardware: Hardware, dtype: str, head: int) -> tuple[str, ...]:
    """The kernels of a fused attention's backward, the main one in the middle (NVIDIA) or last (AMD)."""
    if hardware.is_amd:
        return "bwd_preprocess", "bwd_kernel_dk_dv", "bwd_kernel_dq"
    traits = (
        f"pytorch_flash::Flash_bwd_kernel_traits<{head}, 64, 128, 8, 2, "
        f"4, 4, false, false, cutlass::{_cutlass_type(dtype)}>"
    )
    return (
        f"void pytorch_flash::flash_bwd_dot_do_o_kernel<true, {traits} >(pytorch_flash::Flash_bwd_params)",
        f"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<{traits}, false, false, false, false, true, "
        "false, false>(pytorch_flash::Flash_bwd_params)",
        f"void pytorch_flash::flash_bwd_convert_dq_kernel<{traits} >(pytorch_flash::Flash_bwd_params, int)",
    )


def efficient_attention(hardware: Hardware, dtype: str, head: int, backward: bool) -> str:
    """The memory-efficient attention kernel."""
    generation = {"volta": "sm70", "turing": "sm75"}.get(hardware.architecture, "sm80")
    word = {"c10::Half": "f16", "c10::BFloat16": "bf16"}.get(dtype, "f32")
    if backward:
        return (
            f"fmha_cutlassB_{word}_aligned_64x64_k{64 if head <= 64 else 128}_{generation}"
            "(PyTorchMemEffAttention::AttentionBackwardKernel::Params)"
        )
    return (
        f"fmha_cutlassF_{word}_aligned_64x{64 if head <= 64 else 128}_rf_{generation}(PyTorchMemEffAttention::"
        f"AttentionKernel::Params)"
    )


def _cutlass_type(dtype: str) -> str:
    return "half_t" if dtype == "c10::Half" else "bfloat16_t"


def all_reduce(hardware: Hardware, dtype: str) -> str:
    """NCCL's (RCCL's) kernel of a ring all-reduce."""
    if hardware.is_amd:
        return "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
    return f"ncclDevKernel_AllReduce_Sum_{_short(dtype)}_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def broadcast(hardware: Hardware) -> str:
    """NCCL's (RCCL's) kernel of a broadcast."""
    if hardware.is_amd:
        return "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
    return "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
