"""Families of operators: a fixed vocabulary, so that a window's mix of them has the same columns in every trace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...timeline.model import KernelClass

_K = KernelClass


@dataclass(frozen=True, slots=True)
class Family:
    """Operators that do the same kind of work."""

    name: str
    work: KernelClass
    """What such an operator computes: the class of its time where no kernels tell."""
    words: str
    """Operator names without `aten::` and without the `_` of in-place forms, parted by blanks."""
    pattern: str = ""
    """Further names, as a regular expression on the whole name."""


FAMILIES: tuple[Family, ...] = (
    Family("other", _K.OTHER, ""),
    Family(
        "grouped by autograd",
        _K.OTHER,
        "AccumulateGrad",
        r"Backward\d*$|^autograd::|AccumulateGrad$|^torch::autograd::|CompiledFunction",
    ),
    Family(
        "convolution",
        _K.CONV_SIMT,
        "conv1d conv2d conv3d convolution _convolution cudnn_convolution miopen_convolution mkldnn_convolution"
        " conv_transpose1d conv_transpose2d conv_transpose3d convolution_overrideable cudnn_convolution_transpose"
        " miopen_depthwise_convolution cudnn_convolution_relu cudnn_convolution_add_relu thnn_conv2d"
        " _conv_depthwise2d conv_depthwise3d",
    ),
    Family(
        "convolution backward",
        _K.CONV_SIMT,
        "convolution_backward mkldnn_convolution_backward convolution_backward_overrideable",
        r"(conv\w*_backward|_?conv_depthwise\w*backward)(_input|_weight|_bias)?$",
    ),
    Family(
        "fallback convolution",
        _K.CONV_SIMT,
        "im2col col2im",
        r"slow_conv|thnn_conv|_slow_|naive_conv|convolution_im2col",
    ),
    Family("linear", _K.GEMM_SIMT, "linear addmm mm addmv mv addr dot mkldnn_linear _addmm_activation"),
    Family("batched matmul", _K.GEMM_SIMT, "matmul bmm baddbmm"),
    Family("einsum", _K.GEMM_SIMT, "einsum tensordot bilinear _trilinear"),
    Family(
        "fused attention",
        _K.ATTENTION,
        "scaled_dot_product_attention _flash_attention_forward _efficient_attention_forward _cudnn_attention_forward"
        " _flash_attention_backward _efficient_attention_backward",
        r"_scaled_dot_product_(flash|efficient|cudnn|fused)|xformers|flash_attn",
    ),
    Family("math attention", _K.ATTENTION, "", r"_scaled_dot_product_attention_math"),
    Family(
        "multi-head module",
        _K.ATTENTION,
        "_native_multi_head_attention _transformer_encoder_layer_fwd _transform_bias_rescale_qkv",
    ),
    Family(
        "batch norm",
        _K.NORM,
        "batch_norm _batch_norm_impl_index native_batch_norm cudnn_batch_norm miopen_batch_norm _batch_norm_with_update"
        " native_batch_norm_backward cudnn_batch_norm_backward miopen_batch_norm_backward batch_norm_stats"
        " batch_norm_elemt batch_norm_gather_stats_with_counts batch_norm_backward_reduce batch_norm_backward_elemt"
        " batch_norm_backward _native_batch_norm_legit _native_batch_norm_legit_no_training instance_norm",
    ),
    Family("layer norm", _K.NORM, "layer_norm native_layer_norm native_layer_norm_backward rms_norm _fused_rms_norm"),
    Family("group norm", _K.NORM, "group_norm native_group_norm native_group_norm_backward"),
    Family(
        "softmax",
        _K.SOFTMAX,
        "softmax _softmax log_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data logsumexp"
        " _safe_softmax _masked_softmax",
    ),
    Family(
        "activation",
        _K.ELEMENTWISE,
        "relu relu6 gelu silu hardswish hardsigmoid mish leaky_relu elu hardtanh prelu sigmoid tanh softplus clamp_min"
        " threshold threshold_backward gelu_backward silu_backward hardswish_backward hardsigmoid_backward"
        " mish_backward leaky_relu_backward elu_backward hardtanh_backward sigmoid_backward tanh_backward glu"
        " glu_backward celu selu",
    ),
    Family(
        "arithmetic",
        _K.ELEMENTWISE,
        "add sub mul div addcmul addcdiv rsub neg reciprocal result_type add_relu multiply subtract divide true_divide"
        " floor_divide remainder fmod diff",
    ),
    Family("powers and roots", _K.ELEMENTWISE, "pow square sqrt rsqrt exp log log2 log1p expm1 erf erfc abs sgn sign"),
    Family("sine and cosine", _K.ELEMENTWISE, "sin cos tan atan2 atan asin acos polar"),
    Family(
        "comparison",
        _K.ELEMENTWISE,
        "eq ne lt le gt ge logical_and logical_or logical_not bitwise_and bitwise_or bitwise_not maximum minimum clamp"
        " clamp_max clip __and__ __or__ isclose equal round floor ceil trunc",
    ),
    Family("where and mask", _K.ELEMENTWISE, "where masked_fill tril triu _s_where"),
    Family(
        "finite check",
        _K.ELEMENTWISE,
        "isfinite isnan isinf nan_to_num _is_any_true _is_all_true _amp_foreach_non_finite_check_and_unscale",
    ),
    Family("loss scale", _K.ELEMENTWISE, "_amp_update_scale"),
    Family("average of weights", _K.ELEMENTWISE, "lerp _foreach_lerp"),
    Family(
        "reduction",
        _K.REDUCE,
        "sum mean amax amin max min argmax argmin norm linalg_vector_norm var std var_mean std_mean any all prod median"
        " nansum aminmax count_nonzero _unsafe_masked_index_put_accumulate",
    ),
    Family(
        "loss",
        _K.REDUCE,
        "cross_entropy_loss nll_loss nll_loss_forward nll_loss_backward nll_loss2d nll_loss2d_forward"
        " nll_loss2d_backward nll_loss_nd mse_loss mse_loss_backward smooth_l1_loss smooth_l1_loss_backward l1_loss"
        " binary_cross_entropy binary_cross_entropy_with_logits binary_cross_entropy_backward huber_loss kl_div"
        " huber_loss_backward",
    ),
    Family(
        "pooling",
        _K.POOL,
        "max_pool2d max_pool2d_with_indices max_pool2d_with_indices_backward avg_pool2d avg_pool2d_backward"
        " adaptive_avg_pool2d _adaptive_avg_pool2d _adaptive_avg_pool2d_backward adaptive_max_pool2d max_pool3d"
        " max_pool3d_with_indices max_pool3d_with_indices_backward avg_pool3d avg_pool3d_backward adaptive_avg_pool3d"
        " _adaptive_avg_pool3d _adaptive_avg_pool3d_backward adaptive_avg_pool1d max_pool1d mkldnn_max_pool2d",
    ),
    Family("copy", _K.COPY, "copy _copy_from"),
    Family("contiguous", _K.COPY, "contiguous"),
    Family("clone", _K.COPY, "clone"),
    Family("cast", _K.COPY, "to _to_copy type_as float half double autocast _autocast_to_reduced_precision"),
    Family("permute", _K.OTHER, "permute transpose t movedim swapaxes swapdims numpy_T mT _reshape_alias"),
    Family(
        "view",
        _K.OTHER,
        "view reshape flatten unflatten unsqueeze squeeze expand expand_as as_strided alias view_as _unsafe_view"
        " resolve_conj resolve_neg broadcast_to view_as_real view_as_complex broadcast_tensors _reshape_from_tensor"
        " stride _has_compatible_shallow_copy_type conj",
    ),
    Family(
        "slice and split", _K.OTHER, "slice select narrow split split_with_sizes chunk unbind unsafe_split diagonal"
    ),
    Family("unfold", _K.OTHER, "unfold pixel_shuffle pixel_unshuffle channel_shuffle unfold_backward"),
    Family(
        "cat and stack", _K.COPY, "cat stack _cat concat hstack vstack repeat tile block_diag flatten_dense_tensors"
    ),
    Family("index", _K.INDEX, "index index_select take take_along_dim index_add __getitem__ one_hot"),
    Family("index put", _K.INDEX, "index_put _index_put_impl_ index_copy index_fill masked_scatter _index_put_impl"),
    Family("gather and scatter", _K.INDEX, "gather scatter scatter_add gather_backward scatter_reduce select_backward"),
    Family("slice backward", _K.COPY, "slice_backward select_scatter slice_scatter unfold_copy"),
    Family(
        "data-dependent shape",
        _K.INDEX,
        "nonzero nonzero_numpy masked_select unique _unique2 unique_dim unique_consecutive repeat_interleave argwhere",
    ),
    Family("host scalar", _K.OTHER, "item _local_scalar_dense is_nonzero"),
    Family("range", _K.OTHER, "arange linspace logspace range meshgrid cartesian_prod tril_indices triu_indices"),
    Family(
        "constant",
        _K.OTHER,
        "zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full eye scalar_tensor",
    ),
    Family("fill", _K.OTHER, "fill"),
    Family("zero", _K.OTHER, "zero"),
    Family("allocation", _K.OTHER, "empty empty_like empty_strided resize new_empty resize_as new_empty_strided set"),
    Family(
        "host tensor", _K.OTHER, "tensor from_numpy lift_fresh lift detach pin_memory is_pinned record_stream as_tensor"
    ),
    Family(
        "pairwise distance", _K.OTHER, "cdist _cdist_forward _cdist_backward pdist _euclidean_dist cosine_similarity"
    ),
    Family("sort", _K.INDEX, "sort topk argsort msort kthvalue searchsorted bucketize bincount histc _histc"),
    Family("non-maximum suppression", _K.OTHER, "", r"\bnms$|nms_kernel"),
    Family("region of interest", _K.OTHER, "", r"roi_(align|pool)|ps_roi|deform_conv2d"),
    Family(
        "grid sampling", _K.OTHER, "grid_sampler grid_sampler_2d grid_sampler_3d affine_grid_generator", r"^aten::grid_"
    ),
    Family("interpolation", _K.ELEMENTWISE, "interpolate", r"upsample_"),
    Family(
        "padding", _K.COPY, "pad constant_pad_nd reflection_pad2d replication_pad2d", r"(reflection|replication)_pad"
    ),
    Family("fused optimizer", _K.OPTIMIZER, "", r"_fused_(adam|adamw|sgd|adagrad)"),
    Family("foreach", _K.OPTIMIZER, "", r"_foreach_"),
    Family("dropout", _K.ELEMENTWISE, "dropout native_dropout native_dropout_backward feature_dropout _fused_dropout"),
    Family("embedding", _K.INDEX, "embedding embedding_bag _embedding_bag embedding_dense_backward embedding_backward"),
    Family("roll", _K.COPY, "roll flip rot90"),
    Family("running sum", _K.INDEX, "cumsum cumprod cummax logcumsumexp _cumsum"),
    Family(
        "random", _K.ELEMENTWISE, "normal uniform bernoulli random randn rand randint randperm randn_like rand_like"
    ),
    Family("complex and fourier", _K.OTHER, "stft istft", r"fft_|_fft"),
    Family("linear algebra", _K.OTHER, "cholesky inverse det", r"linalg_(?!vector_norm)"),
    Family("quantised", _K.OTHER, "", r"quantize|_int_mm|_scaled_mm|^quantized::"),
    Family(
        "communication",
        _K.COMMUNICATION,
        "",
        r"^c10d::|^(gloo|nccl|mpi|ucc):|^record_param_comms$|_c10d_functional|^torch\.distributed|^torch::distributed",
    ),
    Family("compiled region", _K.OTHER, "", r"Torch-Compiled Region|CompiledFxGraph|TorchDynamo|Inductor"),
)
"""`other` comes first; a name belongs to the first family that has it as a word, else whose pattern finds it."""

_INDEX_OF_NAME = {family.name: index for index, family in enumerate(FAMILIES)}
_INDEX_OF_WORD = {word: index for index, family in reversed(list(enumerate(FAMILIES))) for word in family.words.split()}
_PATTERNS = tuple((index, re.compile(family.pattern)) for index, family in enumerate(FAMILIES) if family.pattern)


def number(name: str) -> int:
    """The place in `FAMILIES` of the family of this name. Raises KeyError."""
    return _INDEX_OF_NAME[name]


@lru_cache(maxsize=256)
def chosen(names: tuple[str, ...]) -> np.ndarray:
    """Shape (families + 1,): which families are named; the last place stands for NONE. Raises KeyError."""
    which = np.zeros(len(FAMILIES) + 1, dtype=np.bool_)
    which[[_INDEX_OF_NAME[name] for name in names]] = True
    which.flags.writeable = False
    return which


@lru_cache(maxsize=16384)
def family_of(operator: str) -> int:
    """The place in `FAMILIES` of the family that an operator belongs to, by its recorded name."""
    word = operator.removeprefix("aten::")
    found = _INDEX_OF_WORD.get(word, _INDEX_OF_WORD.get(word.removesuffix("_")))
    if found is not None:
        return found
    return next((index for index, pattern in _PATTERNS if pattern.search(operator)), 0)
