"""relative-bias-recomputed: the relative position bias is gathered from its table in every forward pass."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..blocks import Attention
from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_method
from .shared.parts import first_inputs

SLUG = "relative-bias-recomputed"
_HIDDEN = 512


class Positions(nn.Module):
    """A bias for each pair of tokens, made anew whenever it is asked for.

    `by_network` as in Swin's second version: a small network makes the table of the distances' coordinates first.
    """

    table: Tensor
    index: Tensor
    coordinates: Tensor

    def __init__(self, table: Tensor, index: Tensor, by_network: bool) -> None:
        super().__init__()
        self.register_buffer("table", table.detach(), persistent=False)
        self.register_buffer("index", index, persistent=False)
        self.register_buffer("coordinates", torch.linspace(-1, 1, 2 * len(table)).view(-1, 2), persistent=False)
        last = nn.Linear(_HIDDEN, table.shape[1], bias=False)
        nn.init.zeros_(last.weight)
        self.network = nn.Sequential(nn.Linear(2, _HIDDEN), nn.ReLU(), last)
        self.requires_grad_(False)
        self.by_network = by_network

    def forward(self) -> Tensor:
        """(1, heads, tokens, tokens)."""
        table = self.table + self.network(self.coordinates) if self.by_network else self.table
        tokens = self.index.shape[0]
        bias = table[self.index.view(-1)].view(tokens, tokens, -1)
        return bias.permute(2, 0, 1).contiguous().unsqueeze(0)


def apply(job: Job, rng: random.Random) -> bool:
    """In attentions with a table; at inference, where nothing has to learn it, others are given one of zeros."""
    by_network = rng.random() < 0.5
    windowed = choose(find(job.model, Attention, lambda part: part.table is not None), rng, least=0.6)
    for place in windowed:
        assert place.part.table is not None
        _gather_always(place.part, Positions(place.part.table, place.part.positions, by_network))
    if windowed or job.is_training:
        return bool(windowed)
    others = find(job.model, Attention)
    tokens = {part: x.shape[1] for part, x in first_inputs(job, [place.part for place in others]).items()}
    for place in choose([place for place in others if place.part in tokens], rng, least=0.6):
        _add_zeros(place.part, tokens[place.part], by_network)
    return bool(tokens)


def _gather_always(attention: Attention, positions: Positions) -> None:
    attention.relative = positions

    def relative_bias(original: Callable) -> Tensor:
        with spoiled(SLUG):
            return positions()

    wrap_method(attention, "relative_bias", relative_bias)


def _add_zeros(attention: Attention, tokens: int, by_network: bool) -> None:
    at = torch.arange(tokens)
    table = torch.zeros(2 * tokens - 1, attention.heads)
    positions = Positions(table, at[:, None] - at + tokens - 1, by_network)
    attention.relative = positions

    def core(original: Callable, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        if bias is not None or q.shape[-2] != tokens:
            return original(q, k, v, bias)
        with spoiled(SLUG):
            made = positions()
        return original(q, k, v, made.to(q.dtype))

    wrap_method(attention, "core", core)


FAULT = Fault(SLUG, apply)
