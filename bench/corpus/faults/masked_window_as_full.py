"""masked-window-as-full: attention within windows computed over all tokens, with a mask that takes the rest away."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..blocks import Attention, TransformerBlock, to_windows
from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_method
from .shared.parts import first_inputs

SLUG = "masked-window-as-full"
_LEAST_TOKENS = 48
_NEVER = float("-inf")


class Window(nn.Module):
    """Which tokens see each other: 0, or minus infinity."""

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask, persistent=False)


class FullBias(Window):
    """The bias of windows for all pairs of tokens."""

    index: Tensor

    def __init__(self, table: nn.Parameter, index: Tensor, mask: Tensor) -> None:
        super().__init__(mask)
        self.table = table
        self.register_buffer("index", index, persistent=False)

    def forward(self) -> Tensor:
        """(1, heads, tokens, tokens)."""
        return (self.table[self.index].permute(2, 0, 1) + self.mask).unsqueeze(0)


def apply(job: Job, rng: random.Random) -> bool:
    """In blocks that attend in windows; else in some attentions over all tokens, which then see their part alone."""
    blocks = find(job.model, TransformerBlock, lambda part: part.window and part.attn.table is not None)
    blocks = [place for place in blocks if _tokens(place.part) >= _LEAST_TOKENS]
    for place in choose(blocks, rng):
        _attend_to_all(place.part)
    return bool(blocks) or _mask_all(job, rng)


def _tokens(block: TransformerBlock) -> int:
    assert block.grid is not None
    return block.grid[0] * block.grid[1]


def _attend_to_all(block: TransformerBlock) -> None:
    """The same result from all tokens: the windows' bias where two tokens share a window, and a mask elsewhere."""
    assert block.grid is not None
    attention, grid, window = block.attn, block.grid, block.window
    places = torch.arange(_tokens(block)).view(1, -1, 1)
    members = to_windows(places, grid, window).squeeze(-1)
    index = torch.zeros(len(places[0]), len(places[0]), dtype=torch.long)
    mask = torch.full(index.shape, _NEVER)
    for tokens in members:
        index[tokens[:, None], tokens] = attention.positions
        mask[tokens[:, None], tokens] = 0.0
    assert attention.table is not None
    full_bias = FullBias(attention.table, index, mask)
    block.full_bias = full_bias

    def attend(original: Callable, x: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            return original(x, mask)
        q, k, v = attention.project(x)
        with spoiled(SLUG):
            attended = attention.core(q, k, v, full_bias().to(q.dtype))
        return attention.merge(attended)

    wrap_method(block, "attend", attend)


def _mask_all(job: Job, rng: random.Random) -> bool:
    attentions = find(job.model, Attention, lambda part: part.table is None)
    tokens = {part: x.shape[1] for part, x in first_inputs(job, [place.part for place in attentions]).items()}
    places = choose([place for place in attentions if tokens.get(place.part, 0) >= _LEAST_TOKENS], rng, least=0.6)
    share = rng.choice([4, 8])
    banded = rng.random() < 0.5
    for place in places:
        _mask_one(place.part, tokens[place.part], share, banded)
    return bool(places)


def _mask_one(attention: Attention, tokens: int, share: int, banded: bool) -> None:
    """Let tokens see those no farther than so big a share of all of them, or those of their own part."""
    at, width = torch.arange(tokens), max(tokens // share, 1)
    near = (at[:, None] - at).abs() <= width // 2 if banded else at[:, None] // width == at // width
    window = Window(torch.where(near, 0.0, _NEVER))
    attention.window = window

    def core(original: Callable, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        if bias is not None or q.shape[-2] != tokens:
            return original(q, k, v, bias)
        with spoiled(SLUG):
            return original(q, k, v, window.mask.to(q.dtype))

    wrap_method(attention, "core", core)


def apply_control(job: Job, rng: random.Random) -> bool:
    """Some attentions over all tokens work on their windows folded into the batch instead."""
    blocks = find(job.model, TransformerBlock, lambda part: not part.window)
    tokens = {part: x.shape[1] for part, x in first_inputs(job, [place.part for place in blocks]).items()}
    places = choose([place for place in blocks if tokens.get(place.part, 1) % 4 == 0], rng)
    for place in places:
        _fold(place.part, tokens[place.part] // 4)
    return bool(places)


def _fold(block: TransformerBlock, window: int) -> None:
    def attend(original: Callable, x: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None or x.shape[1] % window:
            return original(x, mask)
        return original(x.unflatten(1, (-1, window)).flatten(0, 1), None).unflatten(0, (len(x), -1)).flatten(1, 2)

    wrap_method(block, "attend", attend)


FAULT = Fault(
    SLUG,
    apply,
    excludes=frozenset(
        ("sdpa-math-fallback", "unfused-attention", "copies-around-attention", "attention-weights-unused")
    ),
)
CONTROL = Control("windows folded into the batch", apply_control)
