"""The layers of `torch.nn`: their constructors' parameters, as of torch 2.13.

Checked in the tests against torch itself.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from .signatures import Arguments, Signature, bind, defaults_of, signature_of
from .values import Value

_CONV = "in_channels, out_channels, kernel_size, stride=1, padding=0"
_CONV_REST = "padding_mode='zeros', device=None, dtype=None"
_BATCH_NORM = "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True"
_INSTANCE_NORM = "num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False"
_FACTORY = "device=None, dtype=None"
_RNN = "num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False"
_TRANSFORMER = "dropout=0.1, activation='relu', layer_norm_eps=1e-05, batch_first=False, norm_first=False, bias=True"
_LOSS = "size_average=None, reduce=None, reduction='mean'"
_MAX_POOL = "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False"
_AVG_POOL = "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True"

_BY_DIMENSION = {
    "Conv{}d": f"{_CONV}, dilation=1, groups=1, bias=True, {_CONV_REST}",
    "ConvTranspose{}d": f"{_CONV}, output_padding=0, groups=1, bias=True, dilation=1, {_CONV_REST}",
    "LazyConv{}d": f"{_CONV.partition(', ')[2]}, dilation=1, groups=1, bias=True, {_CONV_REST}",
    "BatchNorm{}d": f"{_BATCH_NORM}, {_FACTORY}, *, bias=True",
    "InstanceNorm{}d": f"{_INSTANCE_NORM}, {_FACTORY}, *, bias=True",
    "LazyBatchNorm{}d": f"{_BATCH_NORM.partition(', ')[2]}, {_FACTORY}, *, bias=True",
    "MaxPool{}d": _MAX_POOL,
    "AvgPool{}d": _AVG_POOL,
    "LPPool{}d": "norm_type, kernel_size, stride=None, ceil_mode=False",
    "AdaptiveAvgPool{}d": "output_size",
    "AdaptiveMaxPool{}d": "output_size, return_indices=False",
    "MaxUnpool{}d": "kernel_size, stride=None, padding=0",
    "Dropout{}d": "p=0.5, inplace=False",
    "ZeroPad{}d": "padding",
    "ReflectionPad{}d": "padding",
    "ReplicationPad{}d": "padding",
    "CircularPad{}d": "padding",
    "ConstantPad{}d": "padding, value",
}
_SINGLE = {
    "AvgPool2d": f"{_AVG_POOL}, divisor_override=None",
    "AvgPool3d": f"{_AVG_POOL}, divisor_override=None",
    "Linear": f"in_features, out_features, bias=True, {_FACTORY}",
    "NonDynamicallyQuantizableLinear": f"in_features, out_features, bias=True, {_FACTORY}",
    "LazyLinear": f"out_features, bias=True, {_FACTORY}",
    "Bilinear": f"in1_features, in2_features, out_features, bias=True, {_FACTORY}",
    "SyncBatchNorm": f"{_BATCH_NORM}, process_group=None, {_FACTORY}, *, bias=True",
    "LayerNorm": f"normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, {_FACTORY}",
    "RMSNorm": f"normalized_shape, eps=None, elementwise_affine=True, {_FACTORY}",
    "GroupNorm": f"num_groups, num_channels, eps=1e-05, affine=True, {_FACTORY}, *, bias=True",
    "LocalResponseNorm": "size, alpha=0.0001, beta=0.75, k=1.0",
    "Embedding": "num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, "
    f"scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, {_FACTORY}",
    "EmbeddingBag": "num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, "
    f"mode='mean', sparse=False, _weight=None, include_last_offset=False, padding_idx=None, {_FACTORY}",
    "MultiheadAttention": "embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, "
    f"kdim=None, vdim=None, batch_first=False, {_FACTORY}",
    "RNN": f"input_size, hidden_size, num_layers=1, nonlinearity='tanh', {_RNN.partition(', ')[2]}, {_FACTORY}",
    "LSTM": f"input_size, hidden_size, {_RNN}, proj_size=0, {_FACTORY}",
    "GRU": f"input_size, hidden_size, {_RNN}, {_FACTORY}",
    "RNNCell": f"input_size, hidden_size, bias=True, nonlinearity='tanh', {_FACTORY}",
    "LSTMCell": f"input_size, hidden_size, bias=True, {_FACTORY}",
    "GRUCell": f"input_size, hidden_size, bias=True, {_FACTORY}",
    "TransformerEncoderLayer": f"d_model, nhead, dim_feedforward=2048, {_TRANSFORMER}, {_FACTORY}",
    "TransformerDecoderLayer": f"d_model, nhead, dim_feedforward=2048, {_TRANSFORMER}, {_FACTORY}",
    "TransformerEncoder": "encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True",
    "TransformerDecoder": "decoder_layer, num_layers, norm=None",
    "Transformer": "d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, "
    "dropout=0.1, activation='relu', custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-05, "
    f"batch_first=False, norm_first=False, bias=True, {_FACTORY}",
    "PReLU": f"num_parameters=1, init=0.25, {_FACTORY}",
    "Dropout": "p=0.5, inplace=False",
    "AlphaDropout": "p=0.5, inplace=False",
    "Flatten": "start_dim=1, end_dim=-1",
    "Unflatten": "dim, unflattened_size",
    "Fold": "output_size, kernel_size, dilation=1, padding=0, stride=1",
    "Unfold": "kernel_size, dilation=1, padding=0, stride=1",
    "PixelShuffle": "upscale_factor",
    "PixelUnshuffle": "downscale_factor",
    "ChannelShuffle": "groups",
    "Upsample": "size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None",
    "UpsamplingBilinear2d": "size=None, scale_factor=None",
    "UpsamplingNearest2d": "size=None, scale_factor=None",
    "CosineSimilarity": "dim=1, eps=1e-08",
    "GELU": "approximate='none'",
    "GLU": "dim=-1",
    "ELU": "alpha=1.0, inplace=False",
    "CELU": "alpha=1.0, inplace=False",
    "LeakyReLU": "negative_slope=0.01, inplace=False",
    "Hardtanh": "min_val=-1.0, max_val=1.0, inplace=False",
    "Softmax": "dim=None",
    "LogSoftmax": "dim=None",
    "Softmin": "dim=None",
    "Softplus": "beta=1.0, threshold=20.0",
    "Threshold": "threshold, value, inplace=False",
    "Sequential": "*args",
    "ModuleList": "modules=None",
    "ModuleDict": "modules=None",
    "ParameterList": "values=None",
    "ParameterDict": "parameters=None",
    "DataParallel": "module, device_ids=None, output_device=None, dim=0",
    "CrossEntropyLoss": "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', "
    "label_smoothing=0.0",
    "MSELoss": _LOSS,
    "L1Loss": _LOSS,
    "BCELoss": f"weight=None, {_LOSS}",
    "BCEWithLogitsLoss": f"weight=None, {_LOSS}, pos_weight=None",
    "Module": "*args, **kwargs",
    "Identity": "*args, **kwargs",
}
_INPLACE = ("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish", "RReLU")
LAYERS = {
    **{name.format(axes): text for name, text in _BY_DIMENSION.items() for axes in (1, 2, 3)},
    **_SINGLE,
    **dict.fromkeys(_INPLACE, "inplace=False"),
}
"""Layer -> its constructor's parameters as written. Layers of `torch.nn` that are not here take any arguments."""

_NO_LAYERS = frozenset(("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer"))
CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict")
SIZES = frozenset(("kernel_size", "stride", "padding", "dilation", "output_padding"))
"""Parameters that a convolution keeps as one number for each axis."""


def layer_name(dotted: str) -> str:
    """`Conv2d` for `torch.nn.Conv2d` and `torch.nn.modules.conv.Conv2d`; "" for what is no layer of `torch.nn`."""
    home, _, name = dotted.rpartition(".")
    is_layer = home == "torch.nn" or home.startswith(("torch.nn.modules", "torch.nn.parallel"))
    return name if is_layer and name[:1].isupper() and name not in _NO_LAYERS else ""


def bind_layer(name: str, given: Arguments) -> dict[str, Value]:
    """The arguments of a layer of `torch.nn` by parameter, with the defaults of the others."""
    signature, defaults = _signature(LAYERS.get(name, "*args, **kwargs"))
    return bind(signature, given, dict(defaults))


@lru_cache(maxsize=256)
def _signature(text: str) -> tuple[Signature, tuple[tuple[str, Value], ...]]:
    tree = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(tree, ast.FunctionDef)
    defaults = tuple((name, ast.literal_eval(default)) for name, default in defaults_of(tree.args))
    return signature_of(tree.args), defaults


def axes_of(name: str) -> int:
    """How many axes of space a layer's name says it has (`Conv2d`: 2); 0 if it says none."""
    return int(name[-2]) if len(name) > 2 and name[-1] == "d" and name[-2].isdigit() else 0
