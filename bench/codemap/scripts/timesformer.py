import torch
from torch import nn, einsum
from torch.utils.checkpoint import checkpoint
import torch.profiler as tp


def exists(v):
    return v is not None


def default(v, d):
    return v if exists(v) else d() if callable(d) else d


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, *args, **kwargs):
        x = self.norm(x)
        return self.fn(x, *args, **kwargs)


class GEGLU(nn.Module):
    def forward(self, x):
        x, gates = x.chunk(2, dim=-1)
        return x * nn.functional.gelu(gates)


class FeedForward(nn.Module):
    def __init__(self, dim, mult=4, dropout=0.):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, dim * mult * 2),
            GEGLU(),
            nn.Dropout(dropout),
            nn.Linear(dim * mult, dim)
        )

    def forward(self, x):
        return self.net(x)


def attn(q, k, v, mask=None):
    sim = einsum('b i d, b j d -> b i j', q, k)
    if exists(mask):
        sim.masked_fill_(~mask, -torch.finfo(sim.dtype).max)
    attn = sim.softmax(dim=-1)
    out = einsum('b i j, b j d -> b i d', attn, v)
    return out


class Attention(nn.Module):
    def __init__(self, dim, dim_head=16, heads=4):
        super().__init__()
        self.heads = heads
        self.scale = dim_head ** -0.5
        inner_dim = dim_head * heads
        self.to_qkv = nn.Linear(dim, inner_dim * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner_dim, dim), nn.Dropout(0.1))

    def forward(self, x, axis, f, n):
        h = self.heads
        b = x.shape[0]
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        # b n (h d) -> (b h) n d
        q, k, v = map(lambda t: t.reshape(b, -1, h, t.shape[-1] // h).transpose(1, 2).reshape(b * h, t.shape[1], -1), (q, k, v))
        q = q * self.scale

        (cls_q, q_), (cls_k, k_), (cls_v, v_) = map(lambda t: (t[:, :1], t[:, 1:]), (q, k, v))
        cls_out = attn(cls_q, k, v)

        if axis == 'time':
            fold = lambda t: t.reshape(b * h, f, n, -1).transpose(1, 2).reshape(b * h * n, f, -1)
            unfold = lambda t: t.reshape(b * h, n, f, -1).transpose(1, 2).reshape(b * h, f * n, -1)
        else:
            fold = lambda t: t.reshape(b * h * f, n, -1)
            unfold = lambda t: t.reshape(b * h, f * n, -1)
        q_, k_, v_ = map(fold, (q_, k_, v_))

        r = q_.shape[0] // cls_k.shape[0]
        cls_k, cls_v = map(lambda t: t.unsqueeze(1).expand(-1, r, -1, -1).reshape(-1, 1, t.shape[-1]), (cls_k, cls_v))
        k_ = torch.cat((cls_k, k_), dim=1)
        v_ = torch.cat((cls_v, v_), dim=1)
        out = attn(q_, k_, v_)
        out = unfold(out)
        out = torch.cat((cls_out, out), dim=1)
        out = out.reshape(b, h, out.shape[1], -1).transpose(1, 2).flatten(2)
        return self.to_out(out)


class TimeSformer(nn.Module):
    def __init__(self, *, dim=64, num_frames=4, image_size=32, patch_size=8, num_classes=5, depth=2, use_checkpoint=False):
        super().__init__()
        num_patches = (image_size // patch_size) ** 2
        self.patch_size = patch_size
        self.use_checkpoint = use_checkpoint
        self.to_patch_embedding = nn.Linear(3 * patch_size ** 2, dim)
        self.pos_emb = nn.Embedding(num_frames * num_patches + 1, dim)
        self.cls_token = nn.Parameter(torch.randn(1, dim))
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(nn.ModuleList([
                PreNorm(dim, Attention(dim)),
                PreNorm(dim, Attention(dim)),
                PreNorm(dim, FeedForward(dim)),
            ]))
        self.to_out = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def run(self, layer, x, *args):
        if self.use_checkpoint and self.training:
            return checkpoint(layer, x, *args, use_reentrant=False)
        return layer(x, *args)

    def forward(self, video):
        b, f, c, h, w = video.shape
        p = self.patch_size
        n = (h // p) * (w // p)
        video = video.reshape(b, f, c, h // p, p, w // p, p).permute(0, 1, 3, 5, 4, 6, 2).reshape(b, f * n, p * p * c)
        tokens = self.to_patch_embedding(video)
        cls_token = self.cls_token.unsqueeze(0).expand(b, -1, -1)
        x = torch.cat((cls_token, tokens), dim=1)
        x += self.pos_emb(torch.arange(x.shape[1], device=x.device))
        for (time_attn, spatial_attn, ff) in self.layers:
            x = self.run(time_attn, x, 'time', f, n) + x
            x = self.run(spatial_attn, x, 'space', f, n) + x
            x = self.run(ff, x) + x
        cls_token = x[:, 0]
        return self.to_out(cls_token)


def train(steps=4):
    model = TimeSformer(use_checkpoint=True)
    opt = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, nesterov=True)
    with tp.profile(schedule=tp.schedule(wait=1, warmup=1, active=2), with_stack=True) as p:
        for step in range(steps):
            clip = torch.randn(2, 4, 3, 32, 32)
            label = torch.randint(5, (2,))
            opt.zero_grad(set_to_none=True)
            logits = model(clip)
            loss = nn.functional.cross_entropy(logits, label)
            loss.backward()
            opt.step()
            p.step()


train()
