"""split-qkv: queries, keys and values of one input by three linear layers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ..blocks import Attention, CrossAttention
from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import Place, choose, find, wrap_forward, wrap_method

SLUG = "split-qkv"


def apply(job: Job, rng: random.Random) -> bool:
    """In some of the self-attentions."""
    in_one_line = rng.random() < 0.5
    places = choose(find(job.model, Attention, lambda part: hasattr(part, "qkv")), rng)
    for place in places:
        _split(place, in_one_line)
    return bool(places)


def _split(place: Place[Attention], in_one_line: bool) -> None:
    attention = place.part
    layers = split_linear(attention.qkv, 3)
    for name, layer in zip(("q_proj", "k_proj", "v_proj"), layers, strict=True):
        attention.add_module(name, layer)
    del attention.qkv

    def heads(x: Tensor) -> Tensor:
        return x.unflatten(-1, (attention.heads, attention.head_dim)).transpose(1, 2)

    def at_once(original: Callable, x: Tensor) -> tuple[Tensor, ...]:
        with spoiled(SLUG):
            projected = [layer(x) for layer in layers]
        return tuple(map(heads, projected))

    def one_by_one(original: Callable, x: Tensor) -> tuple[Tensor, ...]:
        with spoiled(SLUG):
            return tuple(heads(layer(x)) for layer in layers)

    wrap_method(attention, "project", at_once if in_one_line else one_by_one)


@torch.no_grad()
def split_linear(layer: nn.Linear, parts: int) -> Sequence[nn.Linear]:
    """Layers that give the parts of a layer's result."""
    bias = layer.bias is not None
    split = [nn.Linear(layer.in_features, layer.out_features // parts, bias=bias) for _ in range(parts)]
    for number, part in enumerate(split):
        part.weight.copy_(layer.weight.chunk(parts)[number])
        if bias:
            part.bias.copy_(layer.bias.chunk(parts)[number])
    return split


def apply_control(job: Job, rng: random.Random) -> bool:
    """Cross-attentions that look for positions and take contents: keys and values of different inputs (DETR)."""
    places = choose(find(job.model, CrossAttention, lambda part: hasattr(part, "kv")), rng)
    for place in places:
        _of_different_inputs(place.part)
    return bool(places)


def _of_different_inputs(attention: CrossAttention) -> None:
    to_k, to_v = split_linear(attention.kv, 2)
    position = nn.Parameter(torch.zeros(attention.kv.in_features))
    attention.k, attention.v, attention.position = to_k, to_v, position
    del attention.kv

    def forward(original: Callable, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        projected = attention.q(x), to_k(memory + position), to_v(memory)
        q, k, v = (one.unflatten(-1, (attention.heads, attention.head_dim)).transpose(1, 2) for one in projected)
        return attention.merge(attention.core(q, k, v, mask))

    wrap_forward(attention, forward)


FAULT = Fault(SLUG, apply, excludes=frozenset(("qkv-recomputed",)))
CONTROL = Control("projections of different inputs", apply_control)
