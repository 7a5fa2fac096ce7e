# at: return self.head(
# line: self.head = nn.Linear
# fix: unsafe
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1001)  # ImageNet and background

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(tokens[:, 0]))
