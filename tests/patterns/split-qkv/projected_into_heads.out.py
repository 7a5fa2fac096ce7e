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
        self.to_qkv = nn.Linear(dim, dim * 3)  # all heads
        self.out = nn.Linear(dim, dim)

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        """Joins to_q, to_k, to_v of checkpoints from before they were one layer."""
        for kind in ("weight", "bias"):
            parts = [f"{prefix}{name}.{kind}" for name in ("to_q", "to_k", "to_v")]
            if all(part in state_dict for part in parts):
                state_dict[f"{prefix}to_qkv.{kind}"] = torch.cat([state_dict.pop(part) for part in parts])
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def heads_first(self, t):
        b, n, c = t.shape
        return t.view(b, n, self.h, c // self.h).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q = self.heads_first(q)
        k = self.heads_first(k)
        v = self.heads_first(v)
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
