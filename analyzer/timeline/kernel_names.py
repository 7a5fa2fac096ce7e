"""What a device kernel's name says: what it computes, in which precision, with which alignment.

Names are decoded by ordered rules, most telling first. Vendors' matrix kernels carry their data types in the name:
cuBLAS and cuDNN (`ampere_bf16_s16816gemm_...`, `sm80_xmma_fprop_implicit_gemm_tf32f32_...`, `nvjet_tst_...`), CUTLASS
(`cutlass_80_tensorop_s1688gemm_...`), Tensile (`Cijk_Ailk_Bljk_BBS_BH_...`: bf16 in, bf16 out, fp32 sum), MIOpen
(`igemm_fwd_gtcx2_nhwc_bf16_...`) and Composable Kernel (mangled: `t` is bf16, `DF16_` fp16, `f` fp32).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from .model import KernelClass


class Precision(IntEnum):
    """Arithmetic of a matrix kernel's inputs."""

    UNKNOWN = 0
    FP32 = 1
    TF32 = 2
    HALF = 3
    """fp16 or bf16."""
    INT8 = 4
    FP8 = 5
    FP64 = 6


@dataclass(frozen=True, slots=True)
class KernelName:
    """A decoded kernel name."""

    kernel_class: KernelClass
    precision: Precision = Precision.UNKNOWN
    """UNKNOWN for kernels that are no GEMM or convolution, and where the name is silent."""
    alignment: int = 0
    """Elements by which the operands had to be aligned (`align1`: unaligned loads); 0 where not said."""


_K = KernelClass

_WHOLE_NAME_RULES: tuple[tuple[re.Pattern[str], KernelClass], ...] = tuple(
    (re.compile(pattern), kernel_class)
    for pattern, kernel_class in (
        (r"Memcpy HtoD|CopyHostToDevice|memcpyHtoD", _K.MEMCPY_HTOD),
        (r"Memcpy DtoH|CopyDeviceToHost|memcpyDtoH", _K.MEMCPY_DTOH),
        (r"^Memcpy |CopyDeviceToDevice|memcpyDtoD|__amd_rocclr_copyBuffer", _K.MEMCPY_DTOD),
        (r"^Memset|^FillBuffer|__amd_rocclr_fillBuffer", _K.MEMSET),
        (r"nccl|rccl|mscclKernel|[aA]ll_?[rR]educe(?!d)|cross_device_reduce|nvshmem|multimem_", _K.COMMUNICATION),
        (r"flash|[^a-z]fmha|^fmha|sdpa|attn_(fwd|bwd)|bwd_(kernel_dk|kernel_dq|preprocess)|[aA]ttention", _K.ATTENTION),
        (r"multi_tensor|[fF]used_?(Adam|Sgd|SGD|Lamb|adam|sgd|lamb|adagrad)|adam_cuda_kernel", _K.OPTIMIZER),
        (r"^triton_", _K.TRITON),
        (r"(^|[: ])(nchw|nhwc|ncdhw|ndhwc)\w*To|batched_transpose_|transpose_[A-Z]+2[A-Z]+", _K.LAYOUT),
        (r"transpose_readWrite|AddPaddingKernel|tensorTransform", _K.LAYOUT),
        (r"[bB]atch_?[nN]orm|[lL]ayer_?[nN]orm|[gG]roup_?[nN]orm|[rR][mM][sS]_?[nN]orm|[iI]nstance_?[nN]orm", _K.NORM),
        (r"(^|[:_ ])bn_(fw|bw|bwd|fwd)|RowwiseMoments|GammaBetaBackward|cuComputeGradInput", _K.NORM),
        (r"Compute(Backward)?FusedParams|ComputeInternalGradients", _K.NORM),
        (r"[sS]oft_?[mM]ax", _K.SOFTMAX),
        (r"[pP]ool(ing)?([^a-z]|$)|adaptive_(average|max)|max_pool|avg_pool", _K.POOL),
        (r"compute\w*OffsetsKernel|kern_precompute_indices|spin_kernel", _K.OTHER),
    )
)
"""Tried in order on the whole name before matrix kernels are decoded."""

_POINTWISE_RULES: tuple[tuple[re.Pattern[str], KernelClass], ...] = tuple(
    (re.compile(pattern), kernel_class)
    for pattern, kernel_class in (
        (r"copy_kernel|copy_device_to_device|CatArray|CastTensor|convertTensor|contiguous", _K.COPY),
        (r"elementwise_kernel_with_index|upsample", _K.ELEMENTWISE),
        (r"index|[gG]ather|[sS]catter|[eE]mbedding|nonzero|flatten_indices|[sS]earchsorted|bincount", _K.INDEX),
        (
            r"[sS]ort|TopK|topk|cub::\w*(Scan|Select|Compact|Unique)|tensor_kernel_scan|permute_2D|bounds_check",
            _K.INDEX,
        ),
        (
            r"elementwise|SubTensorOp|Op2dTensor|OpTensor|scalePackedTensor|dropout|distribution_|pointwise",
            _K.ELEMENTWISE,
        ),
        (r"[rR]educe|NLLLoss|nll_loss|ClassNLL|reduction|cub::\w*Reduc", _K.REDUCE),
        (r"epilogue::impl", _K.ELEMENTWISE),
    )
)
"""Tried in order on names that are no matrix kernel."""

_CONVOLUTION = re.compile(
    r"[cC]onv(?!ert)|[sh]\d*cudnn_|fprop|dgrad|wgrad|winograd|Winograd|^igemm_|im2col|Im2Col|Im2d2Col|col2im|flip_filter"
    r"|(^|[ :_])fft[12]d_|pointwise_mult_and_sum_complex|[gG]rouped_direct|bwd_weight|bwd_data"
)
_GEMM = re.compile(r"(?<!fb)gemm|Gemm|GEMM|^Cijk_|^nvjet|gemv|Gemv|dot_kernel|ImplicitGemm|wvSplitK|Matmul|matmul")
_REDUCTION_OF_PARTS = re.compile(r"split[kK]_?[rR]educe|reduction::kernel|ReduceSplitK|reduce_1Block")
_MATRIX_UNIT = re.compile(
    r"tensorop|TensorOp|_wmma|xmma|gmma|hmma|imma|qmma|tensor\d+x\d+x\d+|_[sdhi](884|1688|16816|8816|16832|161616|161632)"
    r"|_[sdhi]64x\d+x\d+gemm|^nvjet|xdl|mfma|_MI\d+x\d+|gtcx"
)
_ALIGNMENT = re.compile(r"_align(\d{1,9})")

_PRECISION_RULES: tuple[tuple[re.Pattern[str], Precision], ...] = tuple(
    (re.compile(pattern), precision)
    for pattern, precision in (
        (r"e4m3|e5m2|fp8|f8f8|Float8|float8|_f8_", Precision.FP8),
        (r"tf32|tfloat32|xf32", Precision.TF32),
        (r"bf16|fp16|f16|half|Half|bfloat16|BFloat16|_h(884|1688|16816)|hgemm|_hcudnn", Precision.HALF),
        (r"i8i8|int8|_s8|i8816|i16832|_i8_|igemm_int8|imma", Precision.INT8),
        (r"dgemm|f64f64|_d884|double", Precision.FP64),
        (r"simt_sgemm|[_ ^]sgemm|scudnn|f32f32|fp32|ffma|[cz]gemm|_sgemm|float|fft|_simt_", Precision.FP32),
        (r"_s(1688|16816)", Precision.TF32),
        (r"_s884", Precision.HALF),
        (r"sgemm", Precision.FP32),
    )
)
"""Tried in order. An `s1688` kernel that names no type reads fp32 and computes in TF32."""

_TENSILE_TYPES = {"H": Precision.HALF, "B": Precision.HALF, "S": Precision.FP32, "D": Precision.FP64}
_TENSILE = re.compile(r"^Cijk_[A-Z]\w+?_B\w+?_((?:I8|4xi8|F8|B8|[HBSDXCZ])\w*)")
_NVJET = re.compile(r"^nvjet_(?:sm\d+_)?([a-z])")
_NVJET_TYPES = {"h": Precision.HALF, "t": Precision.HALF, "s": Precision.TF32, "d": Precision.FP64}
_CK_TYPE = re.compile(r"(?<=[IE_])(DF16_|DF16b|Dh|[tfda])(?:DF16_|DF16b|Dh|[tfda]){2,}(?=[NLS])")
_CK_TYPES = {"f": Precision.FP32, "d": Precision.FP64, "a": Precision.INT8}


@lru_cache(maxsize=8192)
def decode(name: str) -> KernelName:
    """Decode a kernel's (or memory copy's) name."""
    for pattern, kernel_class in _WHOLE_NAME_RULES:
        if pattern.search(name):
            return KernelName(kernel_class)
    is_convolution = _CONVOLUTION.search(name) is not None
    if _REDUCTION_OF_PARTS.search(name) and not is_convolution:
        return KernelName(_K.REDUCE)
    if is_convolution or _GEMM.search(name):
        return _matrix_kernel(name, is_convolution)
    for pattern, kernel_class in _POINTWISE_RULES:
        if pattern.search(name):
            return KernelName(kernel_class)
    return KernelName(_K.OTHER)


def on_matrix_units(precision: Precision, named: bool) -> bool:
    """Whether a matrix kernel counts as tensor-core work.

    AMD's matrix instructions multiply fp32 too, at the rate of its vector units or twice that: such a kernel has as
    much to win from a narrower type as one on plain cores, and counts as SIMT.
    """
    if precision in (Precision.FP32, Precision.FP64):
        return False
    return named or precision in (Precision.TF32, Precision.INT8, Precision.FP8)


def matrix_class(is_convolution: bool, tensor_cores: bool) -> KernelClass:
    """The class of a GEMM or convolution kernel."""
    if is_convolution:
        return _K.CONV_TENSOR_CORE if tensor_cores else _K.CONV_SIMT
    return _K.GEMM_TENSOR_CORE if tensor_cores else _K.GEMM_SIMT


def _matrix_kernel(name: str, is_convolution: bool) -> KernelName:
    precision = _precision(name)
    tensor_cores = on_matrix_units(precision, _MATRIX_UNIT.search(name) is not None)
    alignment = _ALIGNMENT.search(name)
    return KernelName(
        matrix_class(is_convolution, tensor_cores), precision, int(alignment.group(1)) if alignment else 0
    )


def _precision(name: str) -> Precision:
    if match := _TENSILE.match(name):
        types = match.group(1)
        if types.startswith(("I8", "4xi8")):
            return Precision.INT8
        if types.startswith(("F8", "B8")):
            return Precision.FP8
        return _TENSILE_TYPES.get(types[0], Precision.UNKNOWN)
    if match := _NVJET.match(name):
        return _NVJET_TYPES.get(match.group(1), Precision.FP8)
    if name.startswith("_ZN2ck"):
        match = _CK_TYPE.search(name)
        return _CK_TYPES.get(match.group(1), Precision.HALF) if match else Precision.UNKNOWN
    for pattern, precision in _PRECISION_RULES:
        if pattern.search(name):
            return precision
    return Precision.UNKNOWN
