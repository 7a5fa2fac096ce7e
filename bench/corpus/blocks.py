"""Parts that the families' models are built of, written the way careful people write them.

Faults change them from outside, see `surgery.py`; what they look for has names here: `Attention.core`,
`ConvNormAct.norm`, `FoldedNorm`, `DeformableAttention.values`, and `Matcher.costs` in boxes.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

Grid = tuple[int, int]
"""Height and width, in tokens or pixels."""
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


class AttentionCore(nn.Module):
    """What self- and cross-attention share: heads, and the fused product."""

    def __init__(self, dim: int, heads: int, head_dim: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.head_dim = head_dim or dim // heads
        self.inner = self.heads * self.head_dim
        self.proj = nn.Linear(self.inner, dim)

    def core(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """(batch, heads, tokens, head_dim) each, and what is added to the scores; the same shape as `q`."""
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)

    def merge(self, attended: Tensor) -> Tensor:
        """(batch, heads, tokens, head_dim) -> (batch, tokens, dim)."""
        return self.proj(attended.transpose(1, 2).flatten(2))


class Attention(AttentionCore):
    """Self-attention with one projection for q, k and v; with `grid`, a learned bias by relative position (Swin), which
    is kept as it was learned: a bias that still learns has no fused kernel on the CPU."""

    positions: Tensor

    def __init__(
        self, dim: int, heads: int, head_dim: int | None = None, *, grid: Grid | None = None, qkv_bias: bool = True
    ) -> None:
        super().__init__(dim, heads, head_dim)
        self.qkv = nn.Linear(dim, 3 * self.inner, bias=qkv_bias)
        self.table: nn.Parameter | None = None
        if grid is not None:
            numbers = 0.02 * torch.randn((2 * grid[0] - 1) * (2 * grid[1] - 1), heads)
            self.table = nn.Parameter(numbers, requires_grad=False)
            self.register_buffer("positions", relative_positions(grid), persistent=False)
            self._bias: Tensor | None = None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(batch, tokens, dim); `mask` is added to the scores, broadcast over heads."""
        q, k, v = self.project(x)
        return self.merge(self.core(q, k, v, self.bias(q.dtype, mask)))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(batch, tokens, dim) -> q, k and v, each (batch, heads, tokens, head_dim)."""
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, self.head_dim)).permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v

    def bias(self, dtype: torch.dtype, mask: Tensor | None) -> Tensor | None:
        """What is added to the scores, if anything."""
        if self.table is None:
            return mask
        bias = self.relative_bias().to(dtype)
        return bias if mask is None else bias + mask

    def relative_bias(self) -> Tensor:
        """(1, heads, tokens, tokens), gathered once."""
        if self._bias is None:
            self._bias = self.gather_bias().contiguous()
        return self._bias

    def gather_bias(self) -> Tensor:
        """The bias of each pair of tokens from the table of their distances."""
        assert self.table is not None
        return self.table[self.positions].permute(2, 0, 1).unsqueeze(0)


class CrossAttention(AttentionCore):
    """Attention of queries to a memory, with one projection for k and v."""

    def __init__(self, dim: int, heads: int, head_dim: int | None = None, *, memory_dim: int | None = None) -> None:
        super().__init__(dim, heads, head_dim)
        self.q = nn.Linear(dim, self.inner)
        self.kv = nn.Linear(memory_dim or dim, 2 * self.inner)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """(batch, queries, dim), (batch, tokens, memory_dim)."""
        q = self.q(x).unflatten(-1, (self.heads, self.head_dim)).transpose(1, 2)
        k, v = self.kv(memory).unflatten(-1, (2, self.heads, self.head_dim)).permute(2, 0, 3, 1, 4).unbind(0)
        return self.merge(self.core(q, k, v, mask))


class Mlp(nn.Module):
    """Two linear layers with an activation between."""

    def __init__(self, dim: int, hidden: int, act: Callable[[], nn.Module] = nn.GELU) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.act = act()
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        """(…, dim)."""
        return self.fc2(self.act(self.fc1(x)))


class TransformerBlock(nn.Module):
    """Attention and Mlp, each on the normed input and added to it; with `window`, inside windows of that size."""

    def __init__(self, dim: int, heads: int, *, ratio: float = 4.0, grid: Grid | None = None, window: int = 0) -> None:
        super().__init__()
        self.grid, self.window = grid, window
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads, grid=(window, window) if window else None)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, int(dim * ratio))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(batch, tokens, dim)."""
        x = x + self.attend(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The attention's output, (batch, tokens, dim)."""
        if not self.window or self.grid is None:
            return self.attn(x, mask)
        return from_windows(self.attn(to_windows(x, self.grid, self.window), mask), self.grid, self.window)


class ConvNormAct(nn.Module):
    """A convolution without bias, its norm and an activation; the padding keeps the size at stride 1."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int = 3,
        stride: int = 1,
        *,
        groups: int = 1,
        dilation: int = 1,
        norm: Callable[[int], nn.Module] = nn.BatchNorm2d,
        act: Callable[[], nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__()
        padding = dilation * (kernel - 1) // 2
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, groups, bias=False)
        self.norm = norm(outputs)
        self.act = act()

    def forward(self, x: Tensor) -> Tensor:
        """(batch, inputs, height, width) -> (batch, outputs, height / stride, width / stride)."""
        return self.act(self.norm(self.conv(x)))


class PatchEmbed(nn.Module):
    """An image as tokens, one a patch."""

    def __init__(self, channels: int, dim: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, dim, patch, patch)

    def forward(self, image: Tensor) -> Tensor:
        """(batch, channels, height, width) -> (batch, tokens, dim)."""
        return self.proj(image).flatten(2).transpose(1, 2)


class Upsample(nn.Module):
    """Twice as high and wide, then a convolution."""

    def __init__(self, inputs: int, outputs: int, mode: str = "nearest", *, norm: Callable = nn.BatchNorm2d) -> None:
        super().__init__()
        self.mode = mode
        self.conv = ConvNormAct(inputs, outputs, norm=norm)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, inputs, height, width) -> (batch, outputs, 2 height, 2 width)."""
        return self.conv(F.interpolate(x, scale_factor=2.0, mode=self.mode))


class Residual(nn.Module):
    """What `body` makes of the input, added to it."""

    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return x + self.body(x)


class DeformableAttention(nn.Module):
    """Attention to a few sampled points of several feature maps (Deformable DETR, arXiv 2010.04159, equation 3).

    The values are laid out for sampling once, for all levels, so that each level is a view.
    """

    def __init__(self, dim: int, heads: int, levels: int, points: int) -> None:
        super().__init__()
        self.heads, self.levels, self.points = heads, levels, points
        self.offsets = nn.Linear(dim, heads * levels * points * 2)
        self.weights = nn.Linear(dim, heads * levels * points)
        self.value = nn.Linear(dim, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, queries: Tensor, references: Tensor, memory: Tensor, grids: tuple[Grid, ...]) -> Tensor:
        """Queries (batch, queries, dim); where each looks, 0 to 1, (batch, queries, 2) as x and y; the maps of all
        levels as tokens, one after the other, (batch, tokens, dim), and their sizes."""
        batch, count = queries.shape[:2]
        points = self.offsets(queries).view(batch, count, self.heads, self.levels, self.points, 2)
        weights = self.weights(queries).view(batch, count, self.heads, self.levels * self.points).softmax(-1)
        grid = (2 * references[:, :, None, None, None] - 1 + 0.1 * points).permute(3, 0, 2, 1, 4, 5).flatten(1, 2)
        sampled = self.sample(self.values(memory), grid, grids)
        weights = weights.transpose(1, 2).flatten(0, 1).unsqueeze(1)
        return self.proj((sampled * weights).sum(-1).view(batch, -1, count).transpose(1, 2))

    def values(self, memory: Tensor) -> Tensor:
        """(batch, tokens, dim) -> (batch * heads, head_dim, tokens), dense."""
        return self.value(memory).transpose(1, 2).contiguous().unflatten(1, (self.heads, -1)).flatten(0, 1)

    def sample(self, values: Tensor, grid: Tensor, grids: tuple[Grid, ...]) -> Tensor:
        """Points of every level, (levels, batch * heads, queries, points, 2), from the values:
        (batch * heads, head_dim, queries, levels * points)."""
        maps = values.split([height * width for height, width in grids], dim=-1)
        pairs = zip(maps, grids, grid.to(values.dtype), strict=True)
        return torch.cat([F.grid_sample(m.unflatten(-1, size), at, align_corners=False) for m, size, at in pairs], -1)


class FoldedNorm(nn.Identity):
    """Stands where a batch norm was that `fold_norms` has folded into the convolution before it."""

    def __init__(self, norm: _BatchNorm) -> None:
        super().__init__()
        self.kind = type(norm)
        self.channels = norm.num_features


def fold_norms(model: nn.Module) -> nn.Module:
    """Fold every batch norm into the convolution that stands directly before it in its parent, in place. Families do so
    with every job of inference: that is how careful people serve. Layers stand in the order they run in."""
    for parent in list(model.modules()):
        for (_, conv), (name, norm) in pairwise(list(parent.named_children())):
            if (
                isinstance(conv, _CONVOLUTIONS)
                and isinstance(norm, _BatchNorm)
                and len(conv.weight) == norm.num_features
            ):
                _fold(conv, norm)
                setattr(parent, name, FoldedNorm(norm))
    return model


@torch.no_grad()
def _fold(conv: nn.Conv1d | nn.Conv2d | nn.Conv3d, norm: _BatchNorm) -> None:
    assert norm.running_mean is not None and norm.running_var is not None
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    conv.weight.mul_(scale.view(-1, *[1] * (conv.weight.dim() - 1)))
    shift = norm.bias - norm.running_mean * scale
    conv.bias = nn.Parameter(shift if conv.bias is None else shift + conv.bias * scale)


def relative_positions(grid: Grid) -> Tensor:
    """(tokens, tokens): for each pair of tokens of a grid the number of their distance."""
    height, width = grid
    places = torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")).flatten(1)
    down, right = places[:, :, None] - places[:, None, :] + torch.tensor([height - 1, width - 1]).view(2, 1, 1)
    return down * (2 * width - 1) + right


def to_windows(x: Tensor, grid: Grid, window: int) -> Tensor:
    """(batch, tokens, dim) of a grid -> (batch * windows, window², dim)."""
    rows, columns = grid[0] // window, grid[1] // window
    x = x.view(x.shape[0], rows, window, columns, window, x.shape[-1])
    return x.transpose(2, 3).reshape(-1, window * window, x.shape[-1])


def from_windows(x: Tensor, grid: Grid, window: int) -> Tensor:
    """Undoes `to_windows`."""
    rows, columns = grid[0] // window, grid[1] // window
    x = x.view(-1, rows, columns, window, window, x.shape[-1])
    return x.transpose(2, 3).reshape(x.shape[0], rows * columns * window * window, x.shape[-1])
