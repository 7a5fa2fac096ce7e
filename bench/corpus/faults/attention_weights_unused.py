"""attention-weights-unused: `nn.MultiheadAttention` computes the mean of its weights, and nobody takes it.

Its slow path is written out here, operator by operator (torch 2.13, `torch.nn.functional.multi_head_attention_forward`
with `need_weights`), so that the projections, which are no fault, stay outside of the mark. Where a model has the
module itself, it is only asked for its weights.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from ..blocks import AttentionCore
from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_forward, wrap_method
from .shared.operators import within_modules

SLUG = "attention-weights-unused"
_PASSES = ("aten::bmm", "aten::baddbmm", "aten::softmax", "aten::mean", "aten::mul", "aten::div")


def multi_head_attention_forward(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """The attended values, (batch, heads, queries, head_dim), and the weights' mean over the heads."""
    batch, heads, queries, head_dim = q.shape
    q, k, v = (one.reshape(batch * heads, -1, head_dim) for one in (q, k, v))
    scaled = q * sqrt(1.0 / head_dim)
    if bias is None:
        weights = torch.bmm(scaled, k.transpose(-2, -1))
    else:
        if bias.dtype == torch.bool:
            bias = torch.zeros_like(bias, dtype=q.dtype).masked_fill_(~bias, float("-inf"))
        mask = bias.to(q.dtype).expand(batch, heads, queries, -1).reshape(batch * heads, queries, -1)
        weights = torch.baddbmm(mask, scaled, k.transpose(-2, -1))
    weights = F.softmax(weights, dim=-1)
    attended = torch.bmm(weights, v)
    return attended.view(batch, heads, queries, head_dim), weights.view(batch, heads, queries, -1).mean(dim=1)


def apply(job: Job, rng: random.Random) -> bool:
    """In some of the attentions."""
    # At inference the module has a fast path, which does the same passes either way.
    modules = choose(find(job.model, nn.MultiheadAttention), rng) if job.is_training else []
    for place in modules:
        wrap_forward(place.part, _with_weights)
    places = choose(find(job.model, AttentionCore), rng) if not modules else []

    def core(original: Callable, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        with spoiled(SLUG):
            attended, _ = multi_head_attention_forward(q, k, v, bias)
            return attended.to(q.dtype)

    for place in places:
        wrap_method(place.part, "core", core)
    return bool(modules or places)


def _with_weights(original: Callable, *args: Any, **kwargs: Any) -> Any:
    kwargs["need_weights"] = True
    return original(*args, **kwargs)


def spoils(timeline: Timeline) -> BoolArray:
    """The passes over the scores within the module; its fused path has none of them."""
    return within_modules(timeline, "MultiheadAttention", _PASSES)


FAULT = Fault(
    SLUG,
    apply,
    spoils=spoils,
    excludes=frozenset(("sdpa-math-fallback", "unfused-attention", "copies-around-attention", "masked-window-as-full")),
)
