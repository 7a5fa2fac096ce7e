"""Which top-level operators a function, method or layer of torch shows as, in order, where its name does not say so.

Checked in the tests against torch 2.13 itself, on the CPU. Written compactly: operators parted by spaces, `a|b` for one
of two, `?a` for one that may be missing, `a*` for one that may come more than once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

_LOSS = "?broadcast_tensors "
_ATTENTION = (
    "?transpose ?transpose ?transpose ?split_with_sizes* linear ?linear ?linear ?unflatten ?unsqueeze ?transpose "
    "?squeeze ?contiguous ?select* ?view* ?transpose* ?view* ?transpose* ?view* ?transpose* ?view* ?expand ?view "
    "?masked_fill ?mul scaled_dot_product_attention|baddbmm|bmm ?softmax ?dropout ?bmm ?permute ?transpose ?reshape "
    "linear ?view ?view ?mean ?transpose ?squeeze"
)
_ENCODER = (
    f"?layer_norm {_ATTENTION} ?dropout add ?layer_norm linear relu|gelu ?dropout linear ?dropout add ?layer_norm"
)
_DECODER = f"?layer_norm {_ATTENTION} ?dropout add ?layer_norm {_ATTENTION} ?dropout add ?layer_norm linear relu|gelu "
_DECODER += "?dropout linear ?dropout add ?layer_norm"
_TEXT = (
    "?"
    + "|".join(
        [
            "detach",
            "item",
            "is_nonzero",
            "reshape",
            "isfinite",
            "ne",
            "__and__",
            "masked_select",
            "abs",
            "to",
            "min",
            "max",
            "unbind",
            "ceil",
            "div",
            "gt",
            "lt",
            "resolve_conj",
            "resolve_neg",
            "is_complex",
            "select",
            "cat",
            "stack",
            "slice",
        ]
    )
    + "*"
)

FUNCTIONS = {
    "cross_entropy": "cross_entropy_loss",
    "nll_loss": "nll_loss_nd|nll_loss|nll_loss2d",
    "mse_loss": _LOSS + "mse_loss",
    "l1_loss": _LOSS + "l1_loss",
    "smooth_l1_loss": _LOSS + "smooth_l1_loss",
    "huber_loss": _LOSS + "huber_loss",
    "kl_div": "kl_div ?div",
    "interpolate": "upsample_nearest2d|upsample_bilinear2d|upsample_bicubic2d|adaptive_avg_pool2d|upsample_nearest1d|"
    "upsample_linear1d|upsample_nearest3d|upsample_trilinear3d|_upsample_bilinear2d_aa|_upsample_bicubic2d_aa|"
    "_upsample_nearest_exact2d|adaptive_avg_pool1d|adaptive_avg_pool3d",
    "normalize": "linalg_vector_norm|norm clamp_min expand_as div",
    "unfold": "im2col|unfold",
    "fold": "col2im",
    "grid_sample": "grid_sampler",
    "affine_grid": "affine_grid_generator",
    "dropout1d": "feature_dropout",
    "dropout2d": "feature_dropout",
    "dropout3d": "feature_dropout",
    "gumbel_softmax": "empty_like exponential_ log neg add div softmax ?max ?zeros_like ?scatter_ ?sub ?add",
    "relu6": "hardtanh|relu6",
    "logsigmoid": "log_sigmoid",
    "softmin": "neg softmax",
    "group_norm": "group_norm",
    "batch_norm": "?add_ batch_norm",
    "multi_head_attention_forward": _ATTENTION,
    "gaussian_nll_loss": "lt any is_nonzero clone clamp_ log sub pow div add mul mean",
    "cosine_similarity": "cosine_similarity",
    "norm": "linalg_vector_norm|norm|linalg_norm|linalg_matrix_norm",
    "float": "to",
    "half": "to",
    "bfloat16": "to",
    "double": "to",
    "long": "to",
    "int": "to",
    "bool": "to",
    "byte": "to",
    "short": "to",
    "char": "to",
    "cpu": "to",
    "cuda": "to",
    "type": "to",
    "to": "to",
    "numpy": "?detach ?to ?resolve_conj ?resolve_neg",
    "tolist": "?resolve_conj ?resolve_neg ?item*",
    "item": "item",
    "tensor": "?empty ?to lift_fresh ?detach_",
    "as_tensor": "?empty ?lift_fresh ?to",
    "new_tensor": "empty to lift_fresh detach_",
    "from_numpy": "lift_fresh",
    "unique": "_unique2|unique_dim|unique_consecutive",
    "split": "split|split_with_sizes",
    "rot90": "rot90",
    "clip": "clip|clamp",
    "logical_not": "logical_not",
    "max": "max|amax|maximum",
    "fft2": "fft_fft2",
    "ifft2": "fft_ifft2",
    "rfft2": "fft_rfft2",
    "irfft2": "fft_irfft2",
    "rfft": "fft_rfft",
    "irfft": "fft_irfft",
    "fft": "fft_fft",
    "ifft": "fft_ifft",
    "fftn": "fft_fftn",
    "ifftn": "fft_ifftn",
    "fftshift": "fft_fftshift",
    "ifftshift": "fft_ifftshift",
    "fftfreq": "fft_fftfreq",
    "rfftfreq": "fft_rfftfreq",
    "vector_norm": "linalg_vector_norm",
    "inv": "linalg_inv",
    "svd": "linalg_svd|svd",
    "solve": "linalg_solve",
    "det": "linalg_det|det",
    "qr": "linalg_qr",
    "cholesky": "linalg_cholesky|cholesky",
    "eigh": "linalg_eigh",
    "matrix_norm": "linalg_matrix_norm",
    "sinc": "sinc",
    "erf": "erf|special_erf",
    "expit": "special_expit",
    "clip_grad_norm_": "?linalg_vector_norm* ?_foreach_norm ?to* ?stack ?linalg_vector_norm ?add ?reciprocal ?mul ?div "
    "?clamp ?_foreach_mul_ ?mul_* ?unbind ?unbind",
    "clip_grad_value_": "?_foreach_clamp_min_ ?_foreach_clamp_max_ ?clamp_*",
    "parameters_to_vector": "?view* cat",
    "backward": "?ones_like @backward",
    "grad": "?ones_like @backward ?reshape*",
    "zero_grad": "@zero_grad",
    "checkpoint": "",
    "state_dict": "?detach*",
    "load_state_dict": "?copy_*",
    "index_put": "index_put",
    "softmax": "softmax",
    "new_full": "new_full",
    "box_iou": "?max* ?min* ?clamp ?sub* ?mul* ?select* ?slice* ?unsqueeze* ?add ?div",
    "nms": "?to nms",
    "batched_nms": "?max ?to ?add ?mul ?add ?nms",
    "print": _TEXT,
}
"""By the bare name of a function of torch or of a tensor's method."""

LAYERS = {
    "ReLU": "relu|relu_",
    "ReLU6": "hardtanh|hardtanh_|relu6",
    "GELU": "gelu",
    "SiLU": "silu|silu_",
    "Mish": "mish|mish_",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Hardswish": "hardswish|hardswish_",
    "Hardsigmoid": "hardsigmoid|hardsigmoid_",
    "Hardtanh": "hardtanh|hardtanh_",
    "LeakyReLU": "leaky_relu|leaky_relu_",
    "ELU": "elu|elu_",
    "CELU": "celu|celu_",
    "SELU": "selu|selu_",
    "PReLU": "prelu",
    "GLU": "glu",
    "LogSigmoid": "log_sigmoid",
    "Softplus": "softplus",
    "Softsign": "abs add div",
    "Softmax": "softmax",
    "Softmax2d": "softmax",
    "LogSoftmax": "log_softmax",
    "Softmin": "neg softmax",
    "Threshold": "threshold|threshold_",
    "RReLU": "rrelu|rrelu_",
    "Dropout": "dropout|dropout_",
    "AlphaDropout": "alpha_dropout",
    "Dropout1d": "feature_dropout|feature_dropout_",
    "Dropout2d": "feature_dropout|feature_dropout_",
    "Dropout3d": "feature_dropout|feature_dropout_",
    "Linear": "linear",
    "Bilinear": "bilinear",
    "Embedding": "embedding",
    "EmbeddingBag": "?arange ?reshape embedding_bag",
    "LayerNorm": "layer_norm",
    "RMSNorm": "rms_norm",
    "GroupNorm": "group_norm",
    "BatchNorm1d": "?add_ batch_norm",
    "BatchNorm2d": "?add_ batch_norm",
    "BatchNorm3d": "?add_ batch_norm",
    "SyncBatchNorm": "?add_ batch_norm",
    "InstanceNorm1d": "instance_norm",
    "InstanceNorm2d": "instance_norm",
    "InstanceNorm3d": "instance_norm",
    "LocalResponseNorm": "mul ?unsqueeze ?pad avg_pool2d|avg_pool3d ?squeeze mul add pow div",
    "Flatten": "flatten",
    "Unflatten": "unflatten",
    "PixelShuffle": "pixel_shuffle",
    "PixelUnshuffle": "pixel_unshuffle",
    "ChannelShuffle": "channel_shuffle",
    "Fold": "col2im",
    "Unfold": "im2col",
    "Upsample": FUNCTIONS["interpolate"],
    "UpsamplingNearest2d": "upsample_nearest2d",
    "UpsamplingBilinear2d": "upsample_bilinear2d",
    "CosineSimilarity": "cosine_similarity",
    "LSTM": "?zeros ?zeros lstm",
    "GRU": "?zeros gru",
    "RNN": "?zeros rnn_tanh|rnn_relu",
    "LSTMCell": "?zeros lstm_cell",
    "GRUCell": "?zeros gru_cell",
    "RNNCell": "?zeros rnn_tanh_cell|rnn_relu_cell",
    "MultiheadAttention": _ATTENTION,
    "TransformerEncoderLayer": _ENCODER,
    "TransformerDecoderLayer": _DECODER,
    "CrossEntropyLoss": "cross_entropy_loss",
    "NLLLoss": FUNCTIONS["nll_loss"],
    "MSELoss": FUNCTIONS["mse_loss"],
    "L1Loss": FUNCTIONS["l1_loss"],
    "SmoothL1Loss": FUNCTIONS["smooth_l1_loss"],
    "HuberLoss": FUNCTIONS["huber_loss"],
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "KLDivLoss": FUNCTIONS["kl_div"],
    "CosineEmbeddingLoss": "cosine_embedding_loss",
    "TripletMarginLoss": "triplet_margin_loss",
    "MarginRankingLoss": "margin_ranking_loss",
    "CTCLoss": "ctc_loss",
    "Identity": "",
}
"""By the name of a layer of `torch.nn`. A layer that is neither here nor below may show as anything."""

_IN_PLACE = ("add", "addcdiv", "addcmul", "copy", "div", "lerp", "maximum", "mul", "sub", "sqrt", "zero")
OPTIMIZER_NAMES = frozenset(
    [
        *[f"{name}_" for name in _IN_PLACE],
        *[f"_foreach_{name}" for name in [*_IN_PLACE, "neg", "pow", "sign"]],
        *[f"_foreach_{name}_" for name in _IN_PLACE],
        *["_fused_sgd_", "_fused_adam_", "_fused_adamw_", "sqrt", "div", "neg", "item", "dot", "zeros_like", "to"],
    ]
)
"""Operators of which the steps of torch's optimizers consist."""

_BY_AXES = {
    "Conv": "?pad conv{}d",
    "ConvTranspose": "conv_transpose{}d",
    "MaxPool": "max_pool{}d|max_pool{}d_with_indices",
    "AvgPool": "avg_pool{}d",
    "AdaptiveAvgPool": "adaptive_avg_pool{}d",
    "AdaptiveMaxPool": "adaptive_max_pool{}d",
    "ZeroPad": "pad",
    "ReflectionPad": "pad",
    "ReplicationPad": "pad",
    "ConstantPad": "pad",
    "CircularPad": "pad",
}
_FAST_PATHS = {
    "TransformerEncoderLayer": "_transformer_encoder_layer_fwd",
    "MultiheadAttention": "_native_multi_head_attention",
}
"""Layers that show as one operator when they run without gradients."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One operator of several that a call shows as."""

    names: tuple[str, ...]
    is_optional: bool
    repeats: bool


def shown_by_function(name: str) -> tuple[Shown, ...]:
    """What a call of a function or tensor method of this bare name shows as: by default, as an operator of its name."""
    return _parsed(FUNCTIONS.get(name, name))


def shown_by_layer(name: str) -> tuple[Shown, ...] | None:
    """What a call of a layer of `torch.nn` shows as; None where that is not known."""
    if name in LAYERS:
        return _parsed(LAYERS[name])
    kind, axes = name[:-2], name[-2:-1]
    if name.endswith("d") and axes in ("1", "2", "3") and kind.removeprefix("Lazy") in _BY_AXES:
        return _parsed(_BY_AXES[kind.removeprefix("Lazy")].format(axes, axes))
    return None


def fast_path(name: str) -> tuple[Shown, ...]:
    """What a layer may show as instead; () if there is no other way."""
    return _parsed(_FAST_PATHS.get(name, ""))


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[Shown, ...]:
    return tuple(
        Shown(tuple(part.strip("?*").split("|")), part.startswith("?"), part.endswith("*")) for part in text.split()
    )
