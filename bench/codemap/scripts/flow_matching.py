# Flow matching on toy images with a small conditional U-ViT; samples with Heun's method at the end of each round.
import math
from contextlib import contextmanager
from typing import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.profiler import profile, record_function, schedule


def timestep_embedding(t: Tensor, dim: int, max_period: float = 1e4) -> Tensor:
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(half, dtype=torch.float32) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


class SwiGLU(nn.Module):
    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


def rotate_half(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.qn, self.kn = RMSNorm(self.hd), RMSNorm(self.hd)
        inv = 1.0 / (1e4 ** (torch.arange(0, self.hd, 2).float() / self.hd))
        ang = torch.outer(torch.arange(256).float(), inv)
        self.register_buffer("cos", torch.cat([ang.cos()] * 2, -1), persistent=False)
        self.register_buffer("sin", torch.cat([ang.sin()] * 2, -1), persistent=False)

    def rope(self, x: Tensor) -> Tensor:
        n = x.shape[2]
        return x * self.cos[:n] + rotate_half(x) * self.sin[:n]

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = (w(x).view(b, n, self.heads, self.hd).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = self.rope(self.qn(q)), self.rope(self.kn(k))
        out = (
            F.scaled_dot_product_attention(q, k, v)
            .transpose(1, 2)
            .contiguous()
            .view(b, n, d)
        )
        return self.wo(out)


class DiTBlock(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.mlp = SwiGLU(dim, dim * 2)
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = self.ada(c).chunk(6, dim=1)
        x = x + gate_a.unsqueeze(1) * self.attn(modulate(self.norm1(x), shift_a, scale_a))
        x = x + gate_m.unsqueeze(1) * self.mlp(modulate(self.norm2(x), shift_m, scale_m))
        return x


class Net(nn.Module):
    def __init__(self, dim: int = 64, depth: int = 3, heads: int = 4, patch: int = 4, classes: int = 10):
        super().__init__()
        self.patch, self.dim = patch, dim
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.time = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.label = nn.Embedding(classes + 1, dim)
        self.blocks = nn.ModuleList(DiTBlock(dim, heads) for _ in range(depth))
        self.norm = RMSNorm(dim)
        self.out = nn.Linear(dim, 3 * patch * patch)

    def forward(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        b, c, h, w = x.shape
        x = F.unfold(x, self.patch, stride=self.patch).transpose(1, 2)
        x = self.embed(x)
        cond = self.time(timestep_embedding(t * 1000, self.dim)) + self.label(y)
        for block in self.blocks:
            x = block(x, cond)
        x = self.out(self.norm(x)).transpose(1, 2)
        return F.fold(x, (h, w), self.patch, stride=self.patch)


@contextmanager
def swapped(params, ema):
    backup = [p.detach().clone() for p in params]
    for p, e in zip(params, ema):
        p.data.copy_(e)
    try:
        yield
    finally:
        for p, b in zip(params, backup):
            p.data.copy_(b)


@torch.no_grad()
def heun(f: Callable, x: Tensor, steps: int) -> Tensor:
    ts = torch.linspace(0, 1, steps + 1)
    for t0, t1 in zip(ts[:-1], ts[1:]):
        dt = t1 - t0
        d0 = f(x, t0.expand(len(x)))
        mid = x + dt * d0
        if t1 < 1:
            d1 = f(mid, t1.expand(len(x)))
            x = x + dt * (d0 + d1) / 2
        else:
            x = mid
    return x.clamp(-1, 1)


def guided(net: Net, y: Tensor, w: float = 2.0):
    null = torch.full_like(y, 10)

    def field(x, t):
        both = net(torch.cat([x, x]), torch.cat([t, t]), torch.cat([y, null]))
        cond, uncond = both.chunk(2)
        return uncond + w * (cond - uncond)

    return field


def main(rounds: int = 4) -> None:
    net = Net()
    params = list(net.parameters())
    ema = [p.detach().clone() for p in params]
    opt = torch.optim.AdamW(params, lr=3e-4, foreach=True)
    with profile(schedule=schedule(wait=1, warmup=1, active=2)) as prof:
        for i in range(rounds):
            x1 = torch.rand(8, 3, 24, 24) * 2 - 1
            y = torch.randint(0, 10, (8,))
            y = torch.where(torch.rand(8) < 0.1, torch.full_like(y, 10), y)
            with record_function("interpolate"):
                x0 = torch.randn_like(x1)
                t = torch.sigmoid(torch.randn(8))
                tt = t.view(-1, 1, 1, 1)
                xt = (1 - tt) * x0 + tt * x1
            with record_function("loss"):
                loss = F.mse_loss(net(xt, t, y), x1 - x0)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(params, 1.0)
            opt.step()
            torch._foreach_lerp_(ema, [p.detach() for p in params], 0.01)
            if i % 2:
                with swapped(params, ema), record_function("sample"):
                    heun(guided(net, torch.arange(4)), torch.randn(4, 3, 24, 24), 3)
            prof.step()


if __name__ == "__main__":
    main()
