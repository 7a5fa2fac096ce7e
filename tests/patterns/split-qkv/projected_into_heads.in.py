# at: q = self.heads_first(self.to_q(x))
# fix: unsafe
import torch
from torch import nn


class Mixer(nn.Module):
    """Multi-head self attention."""

    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.scale = (dim // heads) ** -0.5
        self.to_q = nn.Linear(dim, dim)  # all heads
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)

    def heads_first(self, t):
        b, n, c = t.shape
        return t.view(b, n, self.h, c // self.h).transpose(1, 2)

    def forward(self, x):
        q = self.heads_first(self.to_q(x))
        k = self.heads_first(self.to_k(x))
        v = self.heads_first(self.to_v(x))
        weights = torch.softmax(q @ k.transpose(-1, -2) * self.scale, dim=-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


def run():
    torch.manual_seed(0)
    states = {f"{name}.{kind}": torch.randn(8, 8) if kind == "weight" else torch.randn(8)
              for name in ("to_q", "to_k", "to_v", "out") for kind in ("weight", "bias")}
    mixer = Mixer(8, 2)
    mixer.load_state_dict(states)
    x = torch.randn(2, 5, 8, requires_grad=True)
    y = mixer(x)
    y.square().sum().backward()
    return y, x.grad
