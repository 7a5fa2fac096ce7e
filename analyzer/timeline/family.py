"""Which family of vision models a trace shows: rules of one family are asked for it alone.

The names of module classes say it best; without them the operators do: what is convolved, attended to, sampled, rolled,
joined. Nothing is said where neither does: a rule of the wrong family is worse than one that stays silent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

import numpy as np

from ..trace.model import IntArray
from .columns import is_named
from .model import KernelClass, Timeline
from .op_inputs import of_each, tensors
from .select import outermost


class Family(str, Enum):
    """A family of models, by what its layers do."""

    CNN = "cnn"
    VIT = "vit"
    WINDOWED = "windowed"
    """Attention within windows: Swin and its kin."""
    DETECTION = "detection"
    """Detection transformers: set prediction, deformable sampling."""
    VIDEO = "video"
    """Three-dimensional convolutions, space-time attention."""
    UNET = "unet"
    """An encoder and a decoder that takes the encoder's maps."""
    GENERATIVE = "generative"
    """Diffusion or autoregressive image models."""


_CLASSES = (
    (Family.DETECTION, r"MSDeform|Deformable(Attention|Transformer|D)|DETR|Detr(?![a-z])|DetrFor|HungarianMatcher"),
    (
        Family.GENERATIVE,
        r"Diffusion|DDPM|DDIM|DiT(?![a-z])|Timestep|TimeEmbed|UNet2D|Autoencoder|VectorQuant|VQ(VAE|GAN|Model)"
        r"|StyleGAN|DCGAN|^Generator$|^Discriminator$",
    ),
    (
        Family.VIDEO,
        r"Time[Ss]former|Video(MAE|Mae|Swin|ResNet|Resnet|Net|Former|Transformer|Classif|Encoder)|SlowFast|Vi[Vv]i[Tt](?![a-z])|MViT|X3D|I3D|R3D|R2Plus1D|C3D|S3D(?![a-z])",
    ),
    (
        Family.WINDOWED,
        r"Swin|Window(ed)?(Attention|Msa|MSA|Partition)|WindowBased|ShiftedWindow|MaxVi[tT]|PatchMerging",
    ),
    (Family.UNET, r"U_?[Nn]et(?!2D)(?![a-z])|UNETR|SegResNet"),
    (
        Family.VIT,
        r"VisionTransformer|(?<!Mobile)ViT(?![a-z])|^Vit(?=[A-Z])|De[iI][tT](?![a-z])|Bei[tT](?![a-z])|Dino[vV]2|CLIPVision"
        r"|Siglip|PatchEmbed",
    ),
)
"""Names of module classes, by family; of several families the first that names one holds."""
_CLASS_PATTERNS = tuple((family, re.compile(pattern)) for family, pattern in _CLASSES)
_MODULE = re.compile(r"nn\.Module: (.*?)(?:_\d+)?$")

_CONVOLUTIONS = (*(f"aten::conv{n}d" for n in (1, 2, 3)), *(f"aten::conv_transpose{n}d" for n in (1, 2, 3)))
_VOLUMES = ("aten::conv3d", "aten::conv_transpose3d")
_UPSAMPLES = (
    *("aten::upsample_nearest2d", "aten::upsample_bilinear2d", "aten::upsample_bicubic2d", "aten::pixel_shuffle"),
    *("aten::conv_transpose2d", "aten::_upsample_nearest_exact2d"),
)
_SAMPLERS = ("aten::grid_sampler", "aten::grid_sampler_2d")
_ATTENTION = (
    "aten::scaled_dot_product_attention",
    "aten::softmax",
    "aten::_softmax",
    "aten::_transformer_encoder_layer_fwd",
)
_PRODUCTS = ("aten::linear", "aten::matmul", "aten::bmm", "aten::baddbmm", "aten::addmm", "aten::mm", _ATTENTION[0])
_FEW = 2
"""Attention, or what goes with it, that occurs less often than this may be a head or a loss."""
_LEAST_SAMPLERS = 4
"""Deformable attention samples once for each level of each layer; a spatial transformer once."""
_LEAST_VOLUMES = 0.3
_LEAST_CONVOLUTIONS = 3
_LEAST_KERNEL_PCT = 5.0
_MOSTLY = 2.0


def recognise(timeline: Timeline) -> Family | None:
    """The family of the model that the timeline shows; None where it shows none plainly."""
    trace = timeline.trace
    classes = (found[1] for name in trace.names if (found := _MODULE.match(name)))
    named = family_of_classes(classes)
    if named in (None, Family.UNET, Family.VIT) and _is_volumetric(timeline):
        return Family.VIDEO
    return named or _of_operators(timeline) or _of_kernels(timeline)


def family_of_classes(names: Iterable[str]) -> Family | None:
    """The family that module classes of these names belong to; None if the names tell none apart.

    Plain convolution nets have no names of their own.
    """
    distinct = set(names)
    for family, pattern in _CLASS_PATTERNS:
        if any(map(pattern.search, distinct)):
            return family
    return None


def _of_operators(timeline: Timeline) -> Family | None:
    """The family that the operators tell."""
    convolutions = _count(timeline, _CONVOLUTIONS)
    attentions = _count(timeline, _ATTENTION)
    if _count(timeline, _SAMPLERS) >= _LEAST_SAMPLERS and attentions >= _FEW:
        return Family.DETECTION
    if (convolutions or attentions) and _embeds_timesteps(timeline):
        return Family.GENERATIVE
    if _count(timeline, ("aten::roll",)) >= _FEW and attentions >= _FEW:
        return Family.WINDOWED
    if _joins_encoder_maps(timeline):
        return Family.UNET
    if attentions >= _FEW and _work(timeline, _PRODUCTS) > _MOSTLY * _work(timeline, _CONVOLUTIONS):
        return Family.VIT
    return Family.CNN if convolutions >= _LEAST_CONVOLUTIONS else None


def _is_volumetric(timeline: Timeline) -> bool:
    """Whether a good part of the convolutions go over volumes; one alone may cut the patches of a transformer."""
    volumes = _count(timeline, _VOLUMES)
    return volumes >= _FEW and volumes >= _LEAST_VOLUMES * _count(timeline, _CONVOLUTIONS)


def _of_kernels(timeline: Timeline) -> Family | None:
    """The family that the kernels tell, where no operator called them."""
    share = timeline.breakdown.class_pct
    convolution = share[KernelClass.CONV_TENSOR_CORE] + share[KernelClass.CONV_SIMT] if len(share) else 0.0
    attention = share[KernelClass.ATTENTION] if len(share) else 0.0
    if attention >= _LEAST_KERNEL_PCT and attention > convolution:
        return Family.VIT
    return Family.CNN if convolution >= _LEAST_KERNEL_PCT else None


def _rows(timeline: Timeline, names: tuple[str, ...]) -> IntArray:
    return outermost(timeline, timeline.trace.rows_named(names))


def _count(timeline: Timeline, names: tuple[str, ...]) -> float:
    """How many of these operators a step has."""
    rows = timeline.trace.rows_named(names)
    return len(outermost(timeline, rows)) / max(len(timeline.steps), 1) if len(rows) else 0.0


def _work(timeline: Timeline, names: tuple[str, ...]) -> float:
    """FLOPs of these operators, or how many there are where no shapes were recorded."""
    rows = _rows(timeline, names)
    flops = timeline.costs.flops[rows]
    return float(np.nansum(flops)) if np.isfinite(flops).any() else float(len(rows))


def _embeds_timesteps(timeline: Timeline) -> bool:
    """Whether a vector of times is made into sines and cosines that are joined, as diffusion models do."""
    trace = timeline.trace
    rows = trace.rows_named(("aten::sin", "aten::cos", "aten::cat"))
    is_join = is_named(trace, rows, lambda name: name == "aten::cat")
    waves = [trace.name_of(row) for row in rows.tolist()] if 0 < (~is_join).sum() < len(rows) else []
    follows = [
        set(waves[i - 2 : i]) == {"aten::sin", "aten::cos"} and waves[i] == "aten::cat" for i in range(2, len(waves))
    ]
    joins = rows[2:][np.array(follows, dtype=np.bool_)] if follows else rows[:0]
    shapes = of_each(trace, joins, lambda inputs: [sizes for _, sizes in tensors(inputs)])
    return any(len(pair) == 2 and pair[0] == pair[1] and len(pair[0]) == 2 for pair in shapes)


def _joins_encoder_maps(timeline: Timeline) -> bool:
    """Whether maps that were enlarged are joined with others of their size, up to half of the input's size at least."""
    trace = timeline.trace
    if _count(timeline, _UPSAMPLES) < _FEW:
        return False
    joined = of_each(trace, trace.rows_named(("aten::cat",)), lambda inputs: [sizes for _, sizes in tensors(inputs)])
    heights = {
        maps[0][2]
        for maps in joined
        if len(maps) >= 2 and all(len(sizes) == 4 and sizes[2:] == maps[0][2:] for sizes in maps)
    }
    convolved = of_each(trace, trace.rows_named(("aten::conv2d",)), lambda inputs: inputs.shape(0))
    largest = max((sizes[2] for sizes in convolved if len(sizes) == 4), default=0)
    return len(heights) >= _FEW and max(heights) >= largest / 2
