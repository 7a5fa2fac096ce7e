import torch as th, torch.nn as nn, torch.nn.functional as F
from functools import reduce
from torch.profiler import profile as P, schedule as S
class Lambda(nn.Module):
    def __init__(s, f): super().__init__(); s.f = f
    def forward(s, *a): return s.f(*a)
class Residual(nn.Module):
    def __init__(s, fn): super().__init__(); s.fn = fn
    def forward(s, x): return s.fn(x) + x
def mixer(dim, depth, k=5, p=4, n=10): return nn.Sequential(nn.Conv2d(3, dim, p, p), nn.GELU(), nn.BatchNorm2d(dim), *[nn.Sequential(Residual(nn.Sequential(nn.Conv2d(dim, dim, k, groups=dim, padding=k // 2), nn.GELU(), nn.BatchNorm2d(dim))), nn.Conv2d(dim, dim, 1), nn.GELU(), nn.BatchNorm2d(dim)) for _ in range(depth)], Lambda(lambda x: x.amax((2, 3))), nn.Linear(dim, n))
def data(b): x = th.rand(b, 3, 32, 32); return (x - .5) / .25, (x.flatten(1).sum(1) * 7 % 10).long()
cutout = lambda x, s=8: x * (1 - F.pad(th.ones(1, 1, s, s), (4, 32 - s - 4, 6, 32 - s - 6)))
tta = lambda m, x: reduce(th.add, [m(f(x)).softmax(1) for f in (lambda t: t, lambda t: t.flip(3), lambda t: t.roll(2, 3))]) / 3
def train(m, o, prof, n=5):
    tot = 0
    for i in range(n):
        x, y = data(8); x = cutout(x) if i % 2 else x
        l = F.cross_entropy(m(x), y, label_smoothing=.1); o.zero_grad(); l.backward(); nn.utils.clip_grad_value_(m.parameters(), 1.); o.step()
        tot += l.item(); m.eval()
        with th.no_grad(): acc = (tta(m, x).argmax(1) == y).float().mean().item()
        m.train(); prof.step()
    return tot / n, acc
if __name__ == "__main__":
    m = mixer(32, 3); o = th.optim.AdamW(m.parameters(), lr=3e-3)
    with P(schedule=S(wait=1, warmup=1, active=3)) as prof: print(train(m, o, prof))
