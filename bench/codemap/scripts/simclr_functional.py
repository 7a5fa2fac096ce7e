"""Contrastive pre-training, written with plain functions over a dict of parameters; no nn.Module anywhere."""
import math, random
import torch
import torch.nn.functional as F
from torch.profiler import profile, schedule

def init_conv(o, i, k): return (torch.randn(o, i, k, k) * math.sqrt(2 / (i * k * k))).requires_grad_()
def init_lin(o, i): return (torch.randn(o, i) / math.sqrt(i)).requires_grad_()

def make_params(w=16, proj=32):
    p = {"stem.w": init_conv(w, 3, 3)}
    for n, (ci, co) in enumerate([(w, w), (w, 2 * w), (2 * w, 4 * w)]):
        p[f"b{n}.w1"] = init_conv(co, ci, 3)
        p[f"b{n}.w2"] = init_conv(co, co, 3)
        p[f"b{n}.g"] = torch.ones(co).requires_grad_()
        p[f"b{n}.b"] = torch.zeros(co).requires_grad_()
        if ci != co: p[f"b{n}.s"] = init_conv(co, ci, 1)
    p["fc1"], p["fc2"] = init_lin(64, 4 * w), init_lin(proj, 64)
    return p

def norm(x, g, b, groups=4, eps=1e-5):
    n, c, h, w = x.shape
    x = x.reshape(n, groups, -1)
    mu, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
    x = ((x - mu) * torch.rsqrt(var + eps)).reshape(n, c, h, w)
    return x * g.view(1, -1, 1, 1) + b.view(1, -1, 1, 1)

def block(p, n, x, stride):
    get = lambda k: p.get(f"b{n}.{k}")
    h = F.conv2d(x, get("w1"), stride=stride, padding=1)
    h = F.relu(norm(h, get("g"), get("b")))
    h = F.conv2d(h, get("w2"), padding=1)
    s = x if get("s") is None else F.conv2d(x, get("s"), stride=stride)
    return F.relu(h + s)

def encode(p, x):
    x = F.relu(F.conv2d(x, p["stem.w"], padding=1))
    for n, stride in enumerate((1, 2, 2)):
        x = block(p, n, x, stride)
    return x.mean(dim=(2, 3))

project = lambda p, h: F.normalize(F.linear(F.relu(F.linear(h, p["fc1"])), p["fc2"]), dim=1)

def augment(x):
    if random.random() < .5: x = x.flip(3)
    i, j = random.randrange(5), random.randrange(5)
    x = F.pad(x, (2, 2, 2, 2), mode="reflect")[:, :, i:i + x.shape[2], j:j + x.shape[3]]
    scale = torch.rand(len(x), 3, 1, 1).mul_(.8).add_(.6)
    x = (x * scale).clamp_(0, 1)
    gray = (x * torch.tensor([.299, .587, .114]).view(1, 3, 1, 1)).sum(1, keepdim=True).expand_as(x)
    return torch.where(torch.rand(len(x), 1, 1, 1) < .2, gray, x)

def nt_xent(z1, z2, t=0.5):
    n = z1.shape[0]
    z = torch.cat([z1, z2])
    sim = z @ z.T / t
    sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    target = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(sim, target)

def sgd(params, bufs, lr=.05, mom=.9, wd=1e-4):
    with torch.no_grad():
        for k, p in params.items():
            g = p.grad + wd * p
            buf = bufs.get(k)
            buf = bufs[k] = g.clone() if buf is None else buf.mul_(mom).add_(g)
            p -= lr * buf
            p.grad = None

def main():
    params, bufs = make_params(), {}
    with profile(schedule=schedule(wait=1, warmup=1, active=3)) as prof:
        for step in range(5):
            x = torch.rand(16, 3, 24, 24)
            views = [augment(x) for _ in range(2)]
            z1, z2 = (project(params, encode(params, v)) for v in views)
            loss = nt_xent(z1, z2)
            loss.backward()
            sgd(params, bufs)
            if step and not torch.isfinite(loss): break
            prof.step()

main()
