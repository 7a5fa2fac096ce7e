"""Which family of vision models a trace shows: rules of one family are asked for it alone."""

from __future__ import annotations

from enum import Enum

from .model import Timeline


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


def recognize(timeline: Timeline) -> Family | None:
    """The family of the model that the timeline shows; None where it shows none plainly."""
    trace = timeline.trace
    if len(trace.rows_named(("aten::conv3d",))):
        return Family.VIDEO
    if len(trace.rows_named(("aten::grid_sampler", "aten::grid_sampler_2d"))):
        return Family.DETECTION
    return None
