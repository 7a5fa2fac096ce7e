"""The words that the network reads: operators, calls of the runtime, kernels by class and precision, frames, marks.

Common names have a number of their own; the others share buckets by a checksum, so that a name has the same number in
every process and on every machine. Numbers are part of the model: a change here needs a new `VERSION`, and training.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

import numpy as np

from ..timeline.kernel_names import Precision
from ..timeline.model import KernelClass
from ..trace.model import IntArray

VERSION = 1
PADDING = 0
UNKNOWN = 1

_OPERATORS = """
add add_ addcmul addcmul_ addcdiv_ addmm baddbmm alias all amax amin any arange argmax argmin as_strided avg_pool2d
avg_pool3d batch_norm bernoulli_ bincount bitwise_and bmm bucketize cat cdist chunk clamp clamp_ clamp_max clamp_min
clamp_min_ clone constant_pad_nd contiguous conv1d conv2d conv3d conv_transpose2d conv_transpose3d convolution
_convolution convolution_backward convolution_overrideable cos copy_ cross_entropy_loss cudnn_batch_norm
cudnn_batch_norm_backward cudnn_convolution cudnn_convolution_transpose cumsum detach div div_ dropout einsum elu
embedding embedding_dense_backward empty empty_like empty_strided eq erf exp expand expand_as exponential_ eye fill_
flatten flip floor floor_divide full full_like gather ge gelu gelu_backward glu grid_sampler grid_sampler_2d
grid_sampler_2d_backward group_norm gt hardsigmoid hardswish hardswish_ hardswish_backward hardtanh hardtanh_ histc
im2col col2im index index_add_ index_copy_ index_put_ _index_put_impl_ index_select instance_norm interpolate
is_nonzero isfinite isnan item kthvalue layer_norm le leaky_relu leaky_relu_ leaky_relu_backward lerp_ lift_fresh
linalg_vector_norm linear linspace log log1p log_softmax _log_softmax _log_softmax_backward_data logical_and
logical_not logsumexp lt masked_fill masked_fill_ masked_select matmul max max_pool2d max_pool2d_with_indices
max_pool2d_with_indices_backward max_pool3d max_pool3d_with_indices maximum mean meshgrid min minimum
miopen_batch_norm miopen_batch_norm_backward miopen_convolution mish mkldnn_convolution mm movedim mse_loss mul mul_
multinomial narrow native_batch_norm native_batch_norm_backward native_dropout native_group_norm
native_group_norm_backward native_layer_norm native_layer_norm_backward ne neg nll_loss nll_loss2d nll_loss_backward
nll_loss_forward nonzero norm normal_ numpy_T one_hot ones ones_like pad permute pixel_shuffle pow prod rand rand_like
randint randn randn_like random_ randperm reciprocal reflection_pad2d relu relu_ remainder repeat repeat_interleave
reshape resize_ resolve_conj roll rsqrt rsub scalar_tensor scaled_dot_product_attention
_scaled_dot_product_attention_math _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
_scaled_dot_product_cudnn_attention _scaled_dot_product_flash_attention_for_cpu _flash_attention_forward
_flash_attention_backward _efficient_attention_forward _efficient_attention_backward _fused_sdp_choice scatter
scatter_ scatter_add_ select select_backward set_ sigmoid sigmoid_ sigmoid_backward sign silu silu_ silu_backward sin
slice slice_backward slow_conv_dilated2d slow_conv3d _slow_conv2d_forward thnn_conv2d smooth_l1_loss softmax _softmax
_softmax_backward_data softplus sort split split_with_sizes sqrt sqrt_ squeeze squeeze_ stack std sub sub_ sum
sum_to_size t tanh tanh_backward tensor_split threshold_backward tile to _to_copy topk transpose tril triu unbind
unfold uniform_ unique _unique2 unsqueeze unsqueeze_ upsample_bicubic2d _upsample_bicubic2d_aa upsample_bilinear2d
upsample_bilinear2d_backward _upsample_bilinear2d_aa upsample_nearest2d upsample_nearest2d_backward
upsample_trilinear3d var var_mean view view_as where zero_ zeros zeros_like _local_scalar_dense _to_dense _pin_memory
_foreach_add _foreach_add_ _foreach_addcdiv_ _foreach_addcmul_ _foreach_copy_ _foreach_div_ _foreach_lerp_
_foreach_mul _foreach_mul_ _foreach_norm _foreach_sqrt _foreach_zero_ _fused_adam_ _fused_adamw_ _fused_sgd_
_native_multi_head_attention _transformer_encoder_layer_fwd _nested_tensor_from_mask _weight_norm
_batch_norm_impl_index _cudnn_init_dropout_state _amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_
is_pinned record_stream
"""
"""Of `aten`."""

_OTHER_OPERATORS = """
torchvision::nms torchvision::roi_align torchvision::_roi_align_backward torchvision::deform_conv2d
torchvision::_deform_conv2d_backward torchvision::ps_roi_align record_param_comms c10d::allreduce_ c10d::broadcast_
c10d::allgather_ c10d::reduce_scatter_ torch::autograd::AccumulateGrad torch::autograd::CopyBackwards
torch.distributed.ddp.reducer::copy_bucket_to_grad torch::distributed::reducer::mul_out TorchDynamo_Cache_Lookup
Torch-Compiled_Region CompiledFunction CompiledFunctionBackward
"""
"""Spaces are written `_`."""

_BACKWARD = """
Addmm Mm Bmm Convolution CudnnBatchNorm NativeBatchNorm NativeLayerNorm NativeGroupNorm Relu Gelu Silu Sigmoid Tanh
Softmax LogSoftmax Add Sub Mul Div Neg Pow Sqrt Rsqrt Exp Log Sum Mean View Reshape UnsafeView Permute Transpose T
Expand Slice Select Cat Stack Split Unbind Clone ToCopy AsStrided Squeeze Unsqueeze Index IndexSelect Gather Scatter
MaskedFill Where MaxPool2DWithIndices AvgPool2D AdaptiveAvgPool2D UpsampleBilinear2D UpsampleNearest2D GridSampler2D
NllLoss MseLoss SmoothL1Loss BinaryCrossEntropyWithLogits NativeDropout ScaledDotProductFlashAttention
ScaledDotProductFlashAttentionForCpu ScaledDotProductEfficientAttention Embedding Clamp Roll Repeat Checkpoint
Hardswish LeakyRelu Max Min Norm LinalgVectorNorm Var Std Topk ConstantPadNd Cumsum Prod SoftPlus
"""
"""Autograd nodes, without `Backward0`."""

_RUNTIME = """
DeviceSynchronize StreamSynchronize EventSynchronize EventRecord EventQuery StreamWaitEvent MemcpyAsync Memcpy
MemsetAsync Malloc MallocAsync Free FreeAsync HostAlloc HostFree GraphLaunch StreamIsCapturing FuncGetAttributes
FuncSetAttribute OccupancyMaxActiveBlocksPerMultiprocessor OccupancyMaxActiveBlocksPerMultiprocessorWithFlags
"""
"""Calls of the runtime or driver, without `cuda`, `cu` or `hip`. Plain launches are left out: their kernels stand for
them."""

_MARKS: tuple[tuple[str, str], ...] = (
    ("next batch, one process", r"_SingleProcessDataLoaderIter"),
    ("next batch, workers", r"_MultiProcessingDataLoaderIter|DataLoader"),
    ("optimizer step", r"^Optimizer\.step"),
    ("zero grad", r"^Optimizer\.zero_grad"),
    ("data parallel forward", r"DistributedDataParallel\.forward|DataParallel\.forward"),
    ("collective", r"^nccl:|^gloo:|^rccl:"),
    ("pin memory", r"[Pp]in_?[Mm]emory"),
)
"""Annotations that PyTorch makes. Those of users name no work that the network could know."""

_FRAMES: tuple[tuple[str, str], ...] = (
    ("garbage collection", r"^<built-in function collect>|gc\.collect"),
    ("empty cache", r"empty_?[cC]ache"),
    ("checkpoint", r"torch/utils/checkpoint\.py"),
    ("dynamo", r"torch/_dynamo/|torch/_inductor/|torch/_guards\.py"),
    ("data loading", r"torch/utils/data/"),
    (
        "image library",
        r"(?:^|/)PIL/|(?:^|/)cv2/|^<built-in function (?:imread|imdecode|resize|cvtColor)>|torchvision/io/",
    ),
    ("transforms", r"torchvision/transforms/|albumentations/|image_processing"),
    (
        "numpy",
        r"(?:^|/)numpy/|<built-in method numpy of|<built-in function (?:array|asarray|ascontiguousarray)>|ndarray",
    ),
    ("scipy", r"(?:^|/)scipy/|linear_sum_assignment"),
    (
        "logging or files",
        r"(?:^|/)logging/|tensorboard|torch/serialization\.py|(?:^|/)pickle\.py|(?:^|/)csv\.py|^<built-in method write",
    ),
    ("print", r"^<built-in function print>|torch/_tensor_str\.py"),
    ("read a tensor", r"^<built-in method (?:item|tolist|cpu|__bool__|__float__|__int__) of"),
    ("clip gradients", r"torch/nn/utils/clip_grad\.py"),
    ("metrics", r"torchmetrics|(?:^|/)sklearn/"),
    ("distributed", r"torch/nn/parallel/|torch/distributed/"),
)
"""Python frames that tell of work which no operator shows."""

_BUCKETS = {"operator": 48, "backward": 16, "runtime": 16}
"""How many numbers the names share that have none of their own, by what they name."""

_PLAIN_LAUNCH = re.compile(r"LaunchKernel|LaunchCooperativeKernel|^[cC]u?\w*PushCallConfiguration|PopCallConfiguration")
_VENDOR = re.compile(r"^(cuda|cu|hip|mtia)(?=[A-Z])|_v\d+$|_ptsz$")
_NODE = re.compile(r"^(?:autograd::engine::evaluate_function: )?(\w+?)Backward\d*$")
_EVALUATE = "autograd::engine::evaluate_function: "
_MARK = re.compile("|".join(f"({pattern})" for _, pattern in _MARKS))
_FRAME = re.compile("|".join(f"({pattern})" for _, pattern in _FRAMES))
_COMPILED_REGION = re.compile(r"^Torch-Compiled Region.*")


def _all_words() -> tuple[str, ...]:
    return (
        *(f"aten::{name}" for name in _OPERATORS.split()),
        *(name.replace("_", " ") if name.startswith("Torch") else name for name in _OTHER_OPERATORS.split()),
        *(f"backward {name}" for name in _BACKWARD.split()),
        *(f"runtime {name}" for name in _RUNTIME.split()),
        *(f"mark {word}" for word, _ in _MARKS),
        *(f"frame {word}" for word, _ in _FRAMES),
        *(f"kernel {kind.name} {precision.name}" for kind in KernelClass for precision in Precision),
        *(f"{kind} #{bucket}" for kind, count in _BUCKETS.items() for bucket in range(count)),
    )


WORDS = ("", "unknown", *_all_words())
"""By number."""
SIZE = len(WORDS)
_NUMBER = {word: number for number, word in enumerate(WORDS)}


@lru_cache(maxsize=16384)
def operator(name: str) -> int:
    """The number of an operator, or of an autograd node that the engine evaluates."""
    if node := _NODE.match(name):
        return _named_or_bucket(f"backward {node.group(1)}", "backward")
    name = _COMPILED_REGION.sub("Torch-Compiled Region", name.removeprefix(_EVALUATE))
    return _named_or_bucket(name, "operator")


@lru_cache(maxsize=1024)
def runtime(name: str) -> int:
    """The number of a call of the runtime or driver; `PADDING` for a plain launch, which is left out."""
    if _PLAIN_LAUNCH.search(name):
        return PADDING
    return _named_or_bucket(f"runtime {_VENDOR.sub('', name)}", "runtime")


@lru_cache(maxsize=4096)
def annotation(name: str) -> int:
    """The number of an annotation that PyTorch makes; `PADDING` for any other, which is left out."""
    return _FIRST_MARK + match.lastindex - 1 if (match := _MARK.search(name)) and match.lastindex else PADDING


@lru_cache(maxsize=65536)
def frame(name: str) -> int:
    """The number of a telling Python frame; `PADDING` for any other, which is left out."""
    return _FIRST_FRAME + match.lastindex - 1 if (match := _FRAME.search(name)) and match.lastindex else PADDING


def kernels(kind: IntArray, precision: IntArray) -> IntArray:
    """The numbers of device events of a `KernelClass` in a `Precision` each."""
    return _FIRST_KERNEL + kind * len(Precision) + precision


def is_frame(tokens: np.ndarray) -> np.ndarray:
    """For each number, whether it stands for a Python frame."""
    return (tokens >= _FIRST_FRAME) & (tokens < _FIRST_FRAME + len(_FRAMES))


def is_device(tokens: np.ndarray) -> np.ndarray:
    """For each number, whether it stands for device work."""
    return (tokens >= _FIRST_KERNEL) & (tokens < _FIRST_KERNEL + len(KernelClass) * len(Precision))


_FIRST_MARK = _NUMBER[f"mark {_MARKS[0][0]}"]
_FIRST_FRAME = _NUMBER[f"frame {_FRAMES[0][0]}"]
_FIRST_KERNEL = _NUMBER[f"kernel {KernelClass(0).name} {Precision(0).name}"]


def _named_or_bucket(word: str, kind: str) -> int:
    return _NUMBER.get(word) or _bucket(word, kind)


def _bucket(word: str, kind: str) -> int:
    return _NUMBER[f"{kind} #{zlib.crc32(word.encode()) % _BUCKETS[kind]}"]
