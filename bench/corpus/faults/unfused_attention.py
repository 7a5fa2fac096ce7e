"""unfused-attention: scores, softmax and values as passes of their own."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor

from ..blocks import AttentionCore
from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_method

SLUG = "unfused-attention"
Score = Callable[[Tensor, Tensor], Tensor]


def _scale_scores(q: Tensor, k: Tensor) -> Tensor:
    return (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5


def _scale_queries(q: Tensor, k: Tensor) -> Tensor:
    return torch.matmul(q * q.shape[-1] ** -0.5, k.transpose(-2, -1))


def _divide_scores(q: Tensor, k: Tensor) -> Tensor:
    return torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5


def attention_weights(score: Score, q: Tensor, k: Tensor, bias: Tensor | None) -> Tensor:
    """Softmax of the scores, (batch, heads, queries, keys)."""
    scores = score(q, k)
    if bias is not None:
        scores = scores.masked_fill(~bias, float("-inf")) if bias.dtype == torch.bool else scores + bias
    return scores.softmax(dim=-1).to(q.dtype)


def apply(job: Job, rng: random.Random) -> bool:
    """In some of the attentions."""
    score = rng.choice([_scale_scores, _scale_queries, _divide_scores])
    places = choose(find(job.model, AttentionCore), rng)

    def core(original: Callable, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        with spoiled(SLUG):
            return attention_weights(score, q, k, bias) @ v

    for place in places:
        wrap_method(place.part, "core", core)
    return bool(places)


def apply_control(job: Job, rng: random.Random) -> bool:
    """One attention whose weights say how much each token counts, so that no fused call can do."""
    places = find(job.model, AttentionCore)

    def core(original: Callable, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        weights = attention_weights(_scale_scores, q, k, bias)
        attention = weights.amax(dim=1, keepdim=True)
        looked_at = attention.sum(dim=-2).softmax(dim=-1).amax(dim=-1)
        return (weights @ v) * (1 + 0.01 * looked_at)[..., None, None]

    if places:
        wrap_method(rng.choice(places).part, "core", core)
    return bool(places)


FAULT = Fault(
    SLUG,
    apply,
    excludes=frozenset(
        ("sdpa-math-fallback", "copies-around-attention", "attention-weights-unused", "masked-window-as-full")
    ),
)
CONTROL = Control("attention weights that are used", apply_control)
