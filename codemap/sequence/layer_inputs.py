"""What the operators of a layer of `torch.nn` must have been called with, from the layer's own arguments."""

from __future__ import annotations

from collections.abc import Mapping

from ..building.layers import axes_of
from ..building.values import ModuleValue, TensorValue
from .literals import known_sizes, plain
from .program import Inputs

_WEIGHT_AT = {
    "Linear": 1,
    "NonDynamicallyQuantizableLinear": 1,
    "LayerNorm": 2,
    "RMSNorm": 2,
    "GroupNorm": 2,
    "Embedding": 0,
    "EmbeddingBag": 0,
    "PReLU": 1,
    "Bilinear": 2,
}
"""Which argument of the operator the weight is."""
_VALUES: Mapping[str, tuple[tuple[int, str], ...]] = {
    "Conv": ((3, "stride"), (4, "padding"), (5, "dilation"), (6, "groups")),
    "ConvTranspose": ((3, "stride"), (4, "padding"), (5, "output_padding"), (6, "groups"), (7, "dilation")),
    "MaxPool": ((1, "kernel_size"), (3, "padding")),
    "AvgPool": ((1, "kernel_size"), (3, "padding")),
    "AdaptiveAvgPool": ((1, "output_size"),),
    "AdaptiveMaxPool": ((1, "output_size"),),
    "LayerNorm": ((1, "normalized_shape"),),
    "RMSNorm": ((1, "normalized_shape"),),
    "GroupNorm": ((1, "num_groups"),),
    "Dropout": ((1, "p"),),
    "Softmax": ((1, "dim"),),
    "LogSoftmax": ((1, "dim"),),
    "Flatten": ((1, "start_dim"), (2, "end_dim")),
    "PixelShuffle": ((1, "upscale_factor"),),
    "PixelUnshuffle": ((1, "downscale_factor"),),
    "LeakyReLU": ((1, "negative_slope"),),
    "GLU": ((1, "dim"),),
    "ChannelShuffle": ((1, "groups"),),
}
"""Layer (without its axes) -> argument of the operator, argument of the constructor."""


def layer_inputs(module: ModuleValue, name: str) -> Inputs | None:
    """What the main operator of the layer `module`, a `torch.nn.<name>`, is called with."""
    sizes: list[tuple[int, tuple[int | None, ...]]] = []
    kind = name[:-2] if axes_of(name) else name
    weight = module.attributes.get("weight")
    if isinstance(weight, TensorValue) and weight.shape:
        at = 1 if axes_of(name) else _WEIGHT_AT.get(name)
        if at is not None:
            sizes.append((at, known_sizes(weight.shape)))
    arguments = module.layer_arguments
    values = [(at, plain(arguments[key])) for at, key in _VALUES.get(kind, ()) if key in arguments]
    known = tuple((at, value) for at, value in values if value is not None)
    return Inputs(tuple(sizes), known) if sizes or known else None
