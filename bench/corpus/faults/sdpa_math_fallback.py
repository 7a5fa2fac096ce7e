"""sdpa-math-fallback: a fused call whose inputs no fused kernel takes."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..blocks import AttentionCore
from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_method

SLUG = "sdpa-math-fallback"


def _five_dimensions(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    """Windows or frames on an axis of their own."""
    mask = None if bias is None else bias.unsqueeze(1)
    return F.scaled_dot_product_attention(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), attn_mask=mask).squeeze(1)


def _three_dimensions(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    """Heads folded into the batch."""
    mask = None if bias is None else bias.expand(q.shape[0], q.shape[1], -1, -1).flatten(0, 1)
    out = F.scaled_dot_product_attention(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), attn_mask=mask)
    return out.unflatten(0, q.shape[:2])


def _strided_heads(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    """Channels kept before tokens, as convolutional projections give them."""
    q, k, v = (one.transpose(-2, -1).contiguous().transpose(-2, -1) for one in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def _forced(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    """The fused kernels switched off, as for a comparison once."""
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


STYLES = (_five_dimensions, _three_dimensions, _strided_heads, _forced)


def apply(job: Job, rng: random.Random) -> bool:
    """In some of the attentions."""
    attend = rng.choice(STYLES)
    places = choose(find(job.model, AttentionCore), rng)

    def core(original: Callable, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        with spoiled(SLUG):
            return attend(q, k, v, bias)

    for place in places:
        wrap_method(place.part, "core", core)
    return bool(places)


def apply_control(job: Job, rng: random.Random) -> bool:
    """Attentions with a mask of the queries' type, which the fused kernels take."""
    places = choose(find(job.model, AttentionCore), rng)

    def core(original: Callable, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        if bias is None:
            bias = torch.zeros(q.shape[-2], k.shape[-2], dtype=q.dtype, device=q.device)
        return original(q, k, v, bias)

    for place in places:
        wrap_method(place.part, "core", core)
    return bool(places)


FAULT = Fault(
    SLUG,
    apply,
    excludes=frozenset(
        ("unfused-attention", "copies-around-attention", "attention-weights-unused", "masked-window-as-full")
    ),
)
CONTROL = Control("a mask that the fused call takes", apply_control)
