"""What is measured of one attention, as sums that later calls add to. Imported in the recorded process only.

Importance of a head, with gradients (Michel, Levy, Neubig 2019, "Are Sixteen Heads Really Better than One?"): the mean
over samples of |sum of output x gradient of the loss by it|, the first-order change of the loss if the head were
masked. Without gradients: the mean length of what the head adds to the layer's output, behind the output projection
(Kobayashi et al. 2020, "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms").

Reach is the share of the attention weights on keys near their query, over a sample of queries. Everything is computed
from detached tensors, without random numbers, and stays on its device until it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ...analyzer.timeline.attention_stats import AttentionStatistics, Reach

SAMPLED_SEQUENCES = 4
SAMPLED_QUERIES = 64
"""Of each sequence, evenly spread, the first and the last among them."""
PREFIXES = (0, 1, 2, 4, 5, 8)
"""How many tokens may stand before an image's: class, distillation, registers."""
LEAST_SIDE = 4
"""Fewer rows or columns are no grid that says anything about distance."""


@dataclass(slots=True)
class Tally:
    """Sums over the calls of one attention layer."""

    gradient: Tensor | None = None
    """Shape (heads,)."""
    norm: Tensor | None = None
    """Shape (heads,)."""
    near: dict[int, Tensor] = field(default_factory=dict)
    """By window in tokens: share of the weight, summed over the calls."""
    near_2d: dict[int, Tensor] = field(default_factory=dict)
    reach_calls: int = 0
    grid: tuple[int, int] = (0, 0)
    grid_calls: int = 0
    valid: Tensor | None = None
    valid_calls: int = 0

    def add_gradient(self, importance: Tensor) -> None:
        """Add |output x gradient| by head, shape (heads,)."""
        self.gradient = _sum(self.gradient, importance)

    def add_norm(self, importance: Tensor) -> None:
        """Add the length of what each head contributes, shape (heads,)."""
        self.norm = _sum(self.norm, importance)

    def add_weights(self, weights: Tensor, queries: Tensor, tokens: int, grids: Sequence[tuple[int, int]]) -> None:
        """Add attention weights, shape (sequences, heads, len(queries), keys), of the queries at `queries`.

        Only a layer whose `tokens` queries are its keys has distances. `grids` are sizes of feature maps seen before.
        """
        keys = weights.shape[-1]
        if tokens != keys or keys < 2:
            return
        mean = weights.mean(dim=(0, 1))
        total = mean.sum().clamp_min(torch.finfo(mean.dtype).tiny)
        distance = (queries[:, None] - torch.arange(keys, device=weights.device)[None, :]).abs()
        self.reach_calls += 1
        for window in windows(keys):
            self.near[window] = _sum(self.near.get(window), (mean * (distance <= window)).sum() / total)
        prefix, grid = grid_of(keys, grids)
        if grid == (0, 0) or self.grid not in ((0, 0), grid):
            return
        self.grid, columns = grid, grid[1]
        place = torch.arange(keys, device=weights.device) - prefix
        asked = queries >= prefix
        own = queries[asked] - prefix
        rows_apart = (own[:, None] // columns - place[None, :] // columns).abs()
        columns_apart = (own[:, None] % columns - place[None, :] % columns).abs()
        apart = torch.where(place[None, :] < 0, 0, torch.maximum(rows_apart, columns_apart))
        here = mean[asked]
        total = here.sum().clamp_min(torch.finfo(here.dtype).tiny)
        self.grid_calls += 1
        for window in windows(max(grid)):
            self.near_2d[window] = _sum(self.near_2d.get(window), (here * (apart <= window)).sum() / total)

    def add_valid(self, share: Tensor) -> None:
        """Add the share of tokens that are no padding."""
        self.valid = _sum(self.valid, share)
        self.valid_calls += 1

    def statistics(self, layer: str) -> AttentionStatistics:
        """What all calls say together."""
        by_gradient, by_norm = _shares(self.gradient), _shares(self.norm)
        return AttentionStatistics(
            layer="_".join(layer.split()) or "model",
            importance=by_gradient or by_norm,
            reach=_reach(self.near, self.reach_calls),
            valid_share=min(float(self.valid) / self.valid_calls, 1.0) if self.valid is not None else math.nan,
            grid=self.grid if self.grid_calls else (0, 0),
            reach_2d=_reach(self.near_2d, self.grid_calls),
            measure="gradient" if by_gradient else "norm" if by_norm else "",
        )


def _sum(known: Tensor | None, more: Tensor) -> Tensor:
    """On the device of the first; a layer whose heads have become others begins anew."""
    return more if known is None or known.shape != more.shape else known + more.to(known.device)


def _reach(sums: dict[int, Tensor], calls: int) -> tuple[Reach, ...]:
    return tuple(Reach(window, min(max(float(sums[window]) / calls, 0.0), 1.0)) for window in sorted(sums))


def _shares(importance: Tensor | None) -> tuple[float, ...]:
    """As shares that sum to 1; () if nothing was measured, or nothing finite."""
    if importance is None:
        return ()
    values = importance.double().tolist()
    total = sum(values)
    return tuple(value / total for value in values) if math.isfinite(total) and total > 0 else ()


def windows(size: int) -> list[int]:
    """Distances to ask for: 1, 2, 3, 4, 6, 8, 12, 16, 24, ... below `size`."""
    found = [1, 2, 3]
    while found[-1] < size:
        found.append(found[-2] * 2)
    return [window for window in found if window < size]


def grid_of(tokens: int, seen: Sequence[tuple[int, int]]) -> tuple[int, tuple[int, int]]:
    """How many tokens stand before the image's, and its rows and columns; zeros if it is none.

    `seen` are sizes of feature maps: a model that makes none works on no image, and a square of tokens is chance.
    """
    if not seen:
        return 0, (0, 0)
    for prefix in PREFIXES:
        for rows, columns in seen:
            if rows * columns == tokens - prefix and min(rows, columns) >= LEAST_SIDE:
                return prefix, (rows, columns)
    for prefix in PREFIXES:
        side = math.isqrt(max(tokens - prefix, 0))
        if side >= LEAST_SIDE and side * side == tokens - prefix:
            return prefix, (side, side)
    return 0, (0, 0)


# One call


def sampled(tokens: int, device: torch.device) -> Tensor:
    """Which queries to look at: at most `SAMPLED_QUERIES`, evenly spread."""
    count = min(tokens, SAMPLED_QUERIES)
    step = (tokens - 1) / max(count - 1, 1)
    return torch.tensor([round(k * step) for k in range(count)], device=device)


def by_heads(tensor: Tensor, heads: int) -> Tensor | None:
    """As (sequences, heads, tokens, width); None if there is no way to tell the heads.

    Heads that the program folded into the sequences are taken apart again if `heads`, the layer's own word, is given.
    """
    if tensor.dim() > 4:
        return tensor.flatten(0, tensor.dim() - 4)
    if tensor.dim() == 4:
        return tensor
    if tensor.dim() == 3 and heads > 0 and tensor.shape[0] % heads == 0:
        return tensor.unflatten(0, (-1, heads))
    return tensor[:, None] if tensor.dim() == 3 else None


def weights_of(
    query: Tensor, key: Tensor, queries: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None
) -> Tensor:
    """Attention weights of the sampled queries, float32, shape (sequences, heads, len(queries), keys).

    `query` and `key` have shape (sequences, heads, tokens, width), `mask` broadcasts over (sequences, heads, queries,
    keys): True or 0 where a key may be looked at.
    """
    query = query[:SAMPLED_SEQUENCES].index_select(2, queries).float()
    key = key[:SAMPLED_SEQUENCES].float()
    if key.shape[1] != query.shape[1]:
        key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scores = query @ key.transpose(-2, -1) * (1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        ahead = torch.arange(key.shape[2], device=key.device)[None, :] > queries[:, None]
        scores = scores.masked_fill(ahead, -math.inf)
    if mask is not None:
        mask = _four_axes(mask)[:SAMPLED_SEQUENCES]
        mask = mask if mask.shape[2] == 1 else mask.index_select(2, queries)
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask.float()
    return scores.softmax(dim=-1).nan_to_num(0.0)  # a row with no key at all


def _four_axes(mask: Tensor) -> Tensor:
    if mask.dim() > 4:
        mask = mask.flatten(0, mask.dim() - 4)
    return mask[(None,) * (4 - mask.dim())]


def valid_share(mask: Tensor, sequences: int) -> Tensor | None:
    """Share of keys that some query may look at; None for a mask that all sequences share: that is no padding."""
    mask = _four_axes(mask)
    if mask.shape[0] != sequences or (sequences == 1 and mask.shape[2] > 1):
        return None
    allowed = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    return allowed.any(dim=2).any(dim=1).float().mean()


def head_norms(output: Tensor, projection: Tensor | None) -> Tensor:
    """Mean length over tokens of what each head adds, shape (heads,), from outputs (sequences, heads, tokens, width).

    `projection` is the weight of the layer behind it, shape (features, heads * width): None if there is none known.
    """
    output = output.float()
    heads, width = output.shape[1], output.shape[3]
    if projection is None:
        return output.norm(dim=-1).mean(dim=(0, 2))
    parts = projection.detach().float().unflatten(1, (heads, width))
    gram = torch.einsum("ehd,ehf->hdf", parts, parts)
    squares = torch.einsum("bhtd,hdf,bhtf->bht", output, gram, output)
    return squares.clamp_min(0.0).sqrt().mean(dim=(0, 2))


def gradient_importance(output: Tensor, gradient: Tensor) -> Tensor:
    """Sum over sequences of |output x gradient|, shape (heads,); both have shape (sequences, heads, tokens, width)."""
    return (output.float() * gradient.float()).sum(dim=(2, 3)).abs().sum(dim=0)
