# slug: split-qkv
# verdict: fault
# at: q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
# at: self.to_q = nn.Linear(dim, dim)
# fix: unsafe
# note: image generation transformer, inference
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(y.transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim))

    def forward(self, x, shift):
        x = x + self.attn(self.norm1(x) + shift)
        return x + self.ff(self.norm2(x))


class Denoiser(nn.Module):
    def __init__(self, dim=96, heads=4, depth=4):
        super().__init__()
        self.time = nn.Linear(1, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.out = nn.Linear(dim, dim)

    def forward(self, x, t):
        shift = self.time(t.view(-1, 1))[:, None]
        for block in self.blocks:
            x = block(x, shift)
        return self.out(x)


@torch.inference_mode()
def sample(net, x, steps, profiler=None):
    for i in range(steps):
        t = torch.full((len(x),), 1 - i / steps)
        x = x - net(x, t) / steps
        if profiler is not None:
            profiler.step()
    return x


def main(profiler):
    sample(Denoiser().eval(), torch.randn(2, 96, 96), 6, profiler)


def result():
    """The same weights, under the names that a checkpoint from before gave them."""
    net = Denoiser(depth=2).eval()
    generator = torch.Generator().manual_seed(0)
    names = {f"attn.{name}": (96, 96) for name in ("to_q", "to_k", "to_v", "to_out")}
    names |= {"ff.0": (192, 96), "ff.2": (96, 192), "norm1": (96,), "norm2": (96,)}
    state = {"time.weight": (96, 1), "time.bias": (96,), "out.weight": (96, 96), "out.bias": (96,)}
    for k in range(2):
        state |= {f"blocks.{k}.{name}.weight": size for name, size in names.items()}
        state |= {f"blocks.{k}.{name}.bias": size[:1] for name, size in names.items()}
    net.load_state_dict({name: torch.randn(size, generator=generator) * 0.1 for name, size in state.items()})
    return sample(net, torch.randn(1, 16, 96, generator=generator), 2)
