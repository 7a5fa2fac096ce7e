import contextlib
import copy
import itertools
from dataclasses import dataclass, field
from typing import Iterator, List, NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import profile, schedule


@dataclass
class Batch:
    labeled: torch.Tensor
    targets: torch.Tensor
    unlabeled: torch.Tensor
    extra: dict = field(default_factory=dict)

    def weak(self):
        return self.unlabeled + 0.05 * torch.randn_like(self.unlabeled)

    def strong(self):
        noisy = self.unlabeled + 0.2 * torch.randn_like(self.unlabeled)
        mask = torch.rand(noisy.shape[0], 1, *noisy.shape[2:]) > 0.1
        return noisy * mask

    @property
    def images(self):
        return torch.cat((self.labeled, self.unlabeled))


class Losses(NamedTuple):
    supervised: torch.Tensor
    consistency: torch.Tensor

    @property
    def total(self):
        return self.supervised + self.consistency


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        inner = 1 + x * (1 - s)
        return grad * s * inner


class SqueezeExcite(nn.Module):
    def __init__(self, ch, r=4):
        super().__init__()
        self.reduce = nn.Conv2d(ch, ch // r, 1)
        self.expand = nn.Conv2d(ch // r, ch, 1)

    def forward(self, x):
        s = F.adaptive_avg_pool2d(x, 1)
        s = self.expand(Swish.apply(self.reduce(s)))
        return x * torch.sigmoid(s)


class MBConv(nn.Module):
    def __init__(self, cin, cout, expand=4, stride=1):
        super().__init__()
        mid = cin * expand
        self.skip = stride == 1 and cin == cout
        self.conv = nn.Sequential(
            nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.SiLU(),
            nn.Conv2d(mid, mid, 3, stride, 1, groups=mid, bias=False), nn.BatchNorm2d(mid), nn.SiLU(),
            SqueezeExcite(mid),
            nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = self.conv(x)
        return x + y if self.skip else y


def build_net(num_classes=10):
    spec = [(16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 40, 2)]
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.SiLU(),
        *(MBConv(i, o, stride=s) for i, o, s in spec),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(40, num_classes),
    )


class EMA:
    def __init__(self, model, decay=0.99):
        self.module = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for e, m in zip(self.module.state_dict().values(), model.state_dict().values()):
            if e.dtype.is_floating_point:
                e.mul_(self.decay).add_(m, alpha=1 - self.decay)
            else:
                e.copy_(m)


@contextlib.contextmanager
def evaluating(net):
    was = net.training
    net.eval()
    try:
        with torch.no_grad():
            yield net
    finally:
        net.train(was)


def batches(n) -> Iterator[Batch]:
    while True:
        yield Batch(torch.randn(n, 3, 24, 24), torch.randint(0, 10, (n,)), torch.randn(n, 3, 24, 24))


def consistency(student_logits, teacher_logits, threshold=0.0):
    p = teacher_logits.softmax(1)
    conf, _ = p.max(1)
    keep = conf.ge(threshold)
    per_sample = F.kl_div(student_logits.log_softmax(1), p, reduction="none").sum(1)
    return (per_sample * keep.float()).sum() / keep.sum().clamp(min=1)


def step(net, ema, batch, opt) -> Losses:
    with evaluating(ema.module) as teacher:
        soft = teacher(batch.weak())
    n = len(batch.labeled)
    logits = net(torch.cat([batch.labeled, batch.strong()]))
    losses = Losses(F.cross_entropy(logits[:n], batch.targets), consistency(logits[n:], soft))
    opt.zero_grad()
    losses.total.backward()
    opt.step()
    ema.update(net)
    return losses


if __name__ == "__main__":
    net = build_net()
    ema = EMA(net)
    opt = torch.optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.9)
    log: List[float] = []
    with profile(schedule=schedule(wait=1, warmup=1, active=3)) as prof:
        for batch in itertools.islice(batches(8), 5):
            losses = step(net, ema, batch, opt)
            log += [l.item() for l in losses]
            prof.step()
