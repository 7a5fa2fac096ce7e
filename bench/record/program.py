"""The programs that are recorded: `program.py NAME STEPS`. They know nothing of being recorded.

Each prints the processor time of its steps in ms, as a JSON list.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Two convolutions with a way around."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Shape in, shape out."""
        hidden = F.relu(self.first_norm(self.first(images)))
        return F.relu(images + self.second_norm(self.second(hidden)))


class Layer(nn.Module):
    """Attention and a perceptron."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Shape in, shape out."""
        batch, count, width = tokens.shape
        parts = self.qkv(self.norms[0](tokens)).reshape(batch, count, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts.unbind(0)).transpose(1, 2).reshape(batch, count, width)
        tokens = tokens + self.out(mixed)
        return tokens + self.mlp(self.norms[1](tokens))


def cnn() -> nn.Module:
    """A small residual network."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        *(Block(32) for _ in range(8)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def vit() -> nn.Module:
    """A small vision transformer."""
    return nn.Sequential(
        nn.Conv2d(3, 192, 4, stride=4),
        nn.Flatten(2),
        Transposed(),
        *(Layer(192) for _ in range(6)),
        First(),
        nn.Linear(192, 10),
    )


class Transposed(nn.Module):
    """Channels last."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Tokens."""
        return images.transpose(1, 2)


class First(nn.Module):
    """The first token."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Of each image."""
        return tokens[:, 0]


def train(model: nn.Module, batch: int) -> Callable[[], None]:
    """A step of a plain loop with AdamW."""
    optimizer = torch.optim.AdamW(model.parameters())
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))

    def step() -> None:
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def infer(model: nn.Module, batch: int) -> Callable[[], None]:
    """A forward pass."""
    model.eval()
    images = torch.randn(batch, 3, 32, 32)

    @torch.no_grad()
    def step() -> None:
        model(images).argmax(1).tolist()

    return step


def run(step: Callable[[], None], steps: int) -> list[float]:
    """The processor time of each step."""
    times = []
    for _ in range(steps):
        began = time.process_time()
        step()
        times.append(1000 * (time.process_time() - began))
    return times


PROGRAMS: dict[str, Callable[[], Callable[[], None]]] = {
    "cnn_training": lambda: train(cnn(), 8),
    "vit_training": lambda: train(vit(), 16),
    "cnn_inference": lambda: infer(cnn(), 16),
    "vit_inference": lambda: infer(vit(), 16),
}

if __name__ == "__main__":
    torch.manual_seed(0)
    print(json.dumps(run(PROGRAMS[sys.argv[1]](), int(sys.argv[2]))))
