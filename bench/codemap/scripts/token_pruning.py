"""Vision transformer that drops tokens as it goes, run for inference; builds its blocks from a config string."""
import dataclasses
import re
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import profile, record_function


@dataclasses.dataclass(frozen=True)
class BlockSpec:
    kind: str
    dim: int
    heads: int = 4
    keep: float = 1.0

    @classmethod
    def parse(cls, text: str) -> "BlockSpec":
        m = re.fullmatch(r"(\w+):(\d+)(?:x(\d+))?(?:@([\d.]+))?", text)
        kind, dim, heads, keep = m.groups()
        return cls(kind, int(dim), int(heads or 4), float(keep or 1))


class Attn(nn.Module):
    def __init__(self, spec: BlockSpec):
        super().__init__()
        self.spec = spec
        self.in_proj_weight = nn.Parameter(torch.randn(3 * spec.dim, spec.dim) * 0.02)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * spec.dim))
        self.out = nn.Linear(spec.dim, spec.dim)
        self.last: Optional[torch.Tensor] = None

    def forward(self, x):
        h, d = self.spec.heads, self.spec.dim
        qkv = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = (t.unflatten(-1, (h, d // h)).transpose(1, 2) for t in qkv.tensor_split(3, dim=-1))
        w = torch.softmax(q @ k.mT * (d // h) ** -0.5, -1)
        self.last = w[:, :, 0, 1:].mean(1)
        return self.out((w @ v).transpose(1, 2).flatten(-2))


class Prune(nn.Module):
    def __init__(self, keep: float):
        super().__init__()
        self.keep = keep

    def forward(self, x, score):
        if self.keep >= 1:
            return x
        cls, tokens = x[:, :1], x[:, 1:]
        k = int(tokens.shape[1] * self.keep)
        top = score.topk(k, dim=1).indices
        kept = tokens.gather(1, top[..., None].expand(-1, -1, x.shape[-1]))
        mask = torch.ones_like(score, dtype=torch.bool).scatter(1, top, False)
        weights = (score * mask).unsqueeze(-1)
        fused = (tokens * weights).sum(1, keepdim=True) / weights.sum(1, keepdim=True).clamp_min(1e-6)
        return torch.cat((cls, kept, fused), 1)


class AttnBlock(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(spec.dim), nn.LayerNorm(spec.dim)
        self.attn = Attn(spec)
        self.prune = Prune(spec.keep)
        self.ffn = nn.Sequential(nn.Linear(spec.dim, spec.dim * 3), nn.Hardswish(), nn.Linear(spec.dim * 3, spec.dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        x = self.prune(x, self.attn.last)
        x += self.ffn(self.n2(x))
        return x


class ConvBlock(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.dw = nn.Conv1d(spec.dim, spec.dim, 3, padding=1, groups=spec.dim)
        self.n = nn.LayerNorm(spec.dim)
        self.pw = nn.Linear(spec.dim, spec.dim)

    def forward(self, x):
        y = self.n(x)
        y = self.dw(y.mT).mT
        y = F.mish(self.pw(y))
        return torch.add(x, y, alpha=0.5)


KINDS = {"a": AttnBlock, "c": ConvBlock}


class PrunedViT(nn.Module):
    def __init__(self, config="c:64 a:64x4@0.7 c:64 a:64x8@0.5 a:64", patch=8, classes=20):
        super().__init__()
        specs = [BlockSpec.parse(t) for t in config.split()]
        dim = specs[0].dim
        self.patchify = nn.Conv2d(3, dim, patch, patch, bias=False)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, 17, dim) * 0.02)
        self.blocks = nn.ModuleList([KINDS[s.kind](s) for s in specs])
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def tokens(self, x):
        x = self.patchify(x).flatten(2).mT
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)
        return x + F.interpolate(self.pos.mT, size=x.shape[1], mode="linear").mT

    def forward(self, x):
        x = self.tokens(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


def tta_predict(model, images):
    votes = []
    for flip in (False, True):
        for scale in (32, 40):
            x = F.interpolate(images, scale, mode="bicubic", antialias=True)
            if flip:
                x = x.flip(-1)
            with record_function(f"view {scale} {'flipped' if flip else 'plain'}"):
                votes.append(model(x).log_softmax(-1))
    logits = torch.logsumexp(torch.stack(votes), 0)
    conf, label = logits.softmax(-1).max(-1)
    keep = conf > conf.median()
    return label[keep].tolist(), conf[keep]


def serve(requests):
    model = PrunedViT().eval().requires_grad_(False)
    for n in requests:
        raw = torch.randint(0, 256, (n, 32, 32, 3), dtype=torch.uint8)
        with record_function("prepare"):
            x = raw.permute(0, 3, 1, 2).float().mul_(1 / 255).sub_(0.5).div_(0.25)
        with torch.inference_mode():
            yield tta_predict(model, x)


if __name__ == "__main__":
    with profile(record_shapes=True) as prof:
        for labels, conf in serve([4, 4, 2, 4]):
            print(labels, conf.mean().item())
            prof.step()
    prof.export_chrome_trace("trace.json")
