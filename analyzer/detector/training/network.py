"""The network: convolutions over the events of a window and attention that picks the telling ones; beside them what the
window's features say as a whole; and two heads on both.

The window's head says whether it is bad, and of which kind if it is. The trace's head pools these answers over the
windows of a trace by attention, once for each kind (after Ilse et al., "Attention-based deep multiple instance
learning", 2018), and says which kinds the trace has. It is for learning only: through it, labels of traces teach the
window's head about windows that have none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ...trace.model import FloatArray
from .. import vocabulary

FURTHEST = 4.0
"""Scales from the usual at which a feature counts as no further away."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the network is; the defaults make 0.24 million parameters."""

    word: int = 32
    hidden: int = 72
    features: int = 160
    window: int = 144
    blocks: int = 3
    dropout: float = 0.25


class Network(nn.Module):
    """See the head of the file. The length of windows must be divisible by 2 ** blocks."""

    def __init__(self, channels: int, features: int, kinds: int, sizes: Sizes | None = None) -> None:
        super().__init__()
        sizes = sizes or Sizes()
        self.overall = Overall(features, sizes)
        self.word = nn.Embedding(vocabulary.SIZE, sizes.word, padding_idx=vocabulary.PADDING)
        self.figures = nn.Linear(channels, sizes.hidden - sizes.word)
        self.enter = nn.Linear(sizes.hidden, sizes.hidden)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.blocks))
        self.telling = nn.Linear(sizes.hidden, 4)
        self.sum_up = nn.Sequential(
            nn.LayerNorm(5 * sizes.hidden + sizes.features),
            nn.Linear(5 * sizes.hidden + sizes.features, sizes.window),
            nn.GELU(),
            nn.Dropout(sizes.dropout),
        )
        self.bad = nn.Linear(sizes.window, 1)
        self.kind = nn.Linear(sizes.window, kinds)
        self.of_trace = TraceHead(sizes.window, kinds + 1)

    def window_vectors(self, token: Tensor, figures: Tensor, features: Tensor) -> Tensor:
        """Shape (windows, size), from `token` (windows, length), `figures` (windows, length, channels) and `features`
        (windows, features), NaN for what is missing."""
        mask = (token != vocabulary.PADDING).unsqueeze(2).to(figures.dtype)
        x = torch.cat([self.word(token), self.figures(figures)], dim=2)
        x = torch.relu(self.enter(x)) * mask
        for block in self.blocks:
            mask = mask.unflatten(1, (-1, 2)).amax(dim=2)
            x = block(x, mask)
        attention = torch.softmax(self.telling(x) + (mask - 1) * 1e4, dim=1)
        picked = torch.matmul(attention.transpose(1, 2), x).flatten(1)
        largest = torch.amax(x * mask, dim=1)
        return self.sum_up(torch.cat([picked, largest, self.overall(features)], dim=1))

    def forward(self, token: Tensor, figures: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """P(bad), shape (windows, 1), and P(kind | bad), shape (windows, kinds)."""
        vectors = self.window_vectors(token, figures, features)
        return torch.sigmoid(self.bad(vectors)), torch.softmax(self.kind(vectors), dim=1)

    def trace_logits(self, vectors: Tensor, trace: Tensor, traces: int) -> Tensor:
        """Logits of what each trace has: every kind, and anything at all; shape (traces, kinds + 1)."""
        bad, kind = self.bad(vectors), self.kind(vectors)
        joint = functional.logsigmoid(bad) + functional.log_softmax(kind, dim=1)
        return self.of_trace(vectors, torch.cat([joint, bad], dim=1), trace, traces)


class Overall(nn.Module):
    """A window's features in units of what is usual for each, and which of them are missing, in one layer."""

    center: Tensor
    scale: Tensor

    def __init__(self, features: int, sizes: Sizes) -> None:
        super().__init__()
        self.register_buffer("center", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        self.drop = nn.Dropout(sizes.dropout)
        self.enter = nn.Linear(2 * features, sizes.features)

    def learn_usual(self, features: np.ndarray) -> None:
        """Take centers and scales from the windows that are learned from, float32 of shape (windows, features)."""
        center, scale = usual_of(features)
        self.center.copy_(torch.from_numpy(center))
        self.scale.copy_(torch.from_numpy(scale))

    def forward(self, features: Tensor) -> Tensor:
        """Shape (windows, size), from features with NaN for what is missing."""
        is_missing = torch.isnan(features)
        usual = torch.where(is_missing, self.center, features)
        distance = torch.clamp((usual - self.center) / self.scale, -FURTHEST, FURTHEST)
        return functional.gelu(self.enter(torch.cat([self.drop(distance), is_missing.to(distance.dtype)], dim=1)))


def usual_of(features: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """Center and scale of each feature, shape (features,) each: the median, and a quarter of the range that holds nine
    windows of ten. 0 and 1 for one that is always missing; 1 for the scale of one that is always the same."""
    center, scale = np.zeros(features.shape[1]), np.ones(features.shape[1])
    is_known = ~np.all(np.isnan(features), axis=0)
    low, center[is_known], high = np.nanpercentile(features[:, is_known], (5, 50, 95), axis=0)
    scale[is_known] = np.where(high > low, (high - low) / 4, 1.0)
    return center, scale


class Block(nn.Module):
    """Every two neighbours become one; then a gated convolution, channel by channel along the events (each sees its
    neighbours), then across channels, beside a way round it."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.merge = nn.Linear(2 * sizes.hidden, sizes.hidden)
        self.norm = nn.LayerNorm(sizes.hidden)
        self.along = nn.Parameter(torch.tensor([[0.1], [0.8], [0.1]]).repeat(1, sizes.hidden))
        self.across = nn.Linear(sizes.hidden, 2 * sizes.hidden)
        self.leave = nn.Linear(sizes.hidden, sizes.hidden)
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Shape (windows, length / 2, hidden), from `x` (windows, length, hidden); `mask` (windows, length / 2, 1) is 0
        on padding."""
        x = self.merge(x.unflatten(1, (-1, 2)).flatten(2)) * mask
        y = functional.pad(self.norm(x) * mask, (0, 0, 1, 1))
        y = y[:, :-2] * self.along[0] + y[:, 1:-1] * self.along[1] + y[:, 2:] * self.along[2]
        value, gate = self.across(y).chunk(2, dim=2)
        return (x + self.dropout(self.leave(value * torch.sigmoid(gate)))) * mask


class TraceHead(nn.Module):
    """What a trace has, from what is said of its windows: for each answer its own attention over the windows."""

    def __init__(self, size: int, answers: int) -> None:
        super().__init__()
        self.attend = nn.Sequential(nn.Linear(size, 32), nn.Tanh(), nn.Linear(32, answers))
        self.scale = nn.Parameter(torch.zeros(answers))
        self.shift = nn.Parameter(torch.zeros(answers))

    def forward(self, vectors: Tensor, said: Tensor, trace: Tensor, traces: int) -> Tensor:
        """Logits, shape (traces, answers). `said`, shape (windows, answers), are the windows' own; `trace`, shape
        (windows,), is 0 to traces - 1."""
        scores = 4.0 * torch.tanh(self.attend(vectors))  # bounded, so that exp needs no largest taken off
        weights = torch.exp(scores)
        sums = weights.new_zeros(traces, weights.shape[1]).index_add(0, trace, weights)
        total = weights.new_zeros(traces, weights.shape[1]).index_add(0, trace, weights * said)
        return torch.exp(self.scale) * total / sums.clamp(min=1e-6) + self.shift
