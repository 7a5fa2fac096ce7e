import torch
import torch.nn as nn
from contextlib import nullcontext
from torch.profiler import profile, schedule, record_function


class Conv3dBlock(nn.Module):
    """Conv + norm + activation, optionally with a temporal kernel."""

    def __init__(self, in_ch, out_ch, kt=1, stride=1):
        super().__init__()
        self.conv = nn.Conv3d(in_ch, out_ch, (kt, 3, 3), (1, stride, stride), (kt // 2, 1, 1), bias=False)
        self.norm = nn.BatchNorm3d(out_ch)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class ResMixin:
    def residual(self, x, y):
        if x.shape == y.shape:
            return x + y
        return y


class Res3d(ResMixin, nn.Module):
    def __init__(self, ch, kt):
        super().__init__()
        self.conv1 = Conv3dBlock(ch, ch, kt)
        self.conv2 = Conv3dBlock(ch, ch, 1)

    def forward(self, x):
        y = self.conv1(x)
        y = self.conv2(y)
        return self.residual(x, y)


class Pathway(nn.Module):
    def __init__(self, width, kt):
        super().__init__()
        self.stem = Conv3dBlock(3, width, kt, 2)
        self.stage1 = Res3d(width, kt)
        self.proj = Conv3dBlock(width, width * 2, kt, 2)
        self.stage2 = Res3d(width * 2, kt)


class SlowFast(nn.Module):
    def __init__(self, classes=8, alpha=4, beta=4, width=16):
        super().__init__()
        self.alpha = alpha
        self.slow = Pathway(width, 1)
        self.fast = Pathway(width // beta, 3)
        self.lateral = nn.Conv3d(width // beta, width, (5, 1, 1), (alpha, 1, 1), (2, 0, 0))
        self.fuse = nn.Conv3d(width * 2, width, 1)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(width * 2 + width // beta * 2, classes)

    def forward(self, clip):
        slow = clip[:, :, ::self.alpha]
        fast = clip
        slow = self.slow.stem(slow)
        fast = self.fast.stem(fast)
        fused = torch.cat((slow, self.lateral(fast)), dim=1)
        slow = self.fuse(fused)
        slow = self.slow.stage2(self.slow.proj(self.slow.stage1(slow)))
        fast = self.fast.stage2(self.fast.proj(self.fast.stage1(fast)))
        pooled = [p.mean((2, 3, 4)) for p in (slow, fast)]
        return self.head(self.drop(torch.cat(pooled, 1)))


class Scaler:
    """Static loss scaling with an overflow check."""

    def __init__(self, scale=2.0 ** 10):
        self.scale = scale

    def __call__(self, loss):
        return loss * self.scale

    def step(self, opt):
        finite = True
        for g in opt.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    continue
                p.grad.div_(self.scale)
                finite &= bool(torch.isfinite(p.grad).all())
        if finite:
            opt.step()
        else:
            self.scale /= 2


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / len(target)) for k in topk]


def run(amp=True, accumulate=2, steps=6):
    net = SlowFast()
    opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    crit = nn.CrossEntropyLoss()
    scaler = Scaler()
    ctx = lambda: torch.autocast("cpu", torch.bfloat16) if amp else nullcontext()
    with profile(schedule=schedule(wait=2, warmup=0, active=4)) as prof:
        for i in range(steps):
            clips, labels = torch.randn(2, 3, 8, 32, 32), torch.randint(0, 8, (2,))
            with ctx(), record_function("fwd"):
                logits = net(clips)
                loss = crit(logits, labels)
                loss = loss / accumulate
            with record_function("bwd"):
                scaler(loss).backward()
            acc1, acc5 = accuracy(logits, labels, (1, 5))
            if (i + 1) % accumulate == 0:
                with record_function("opt"):
                    scaler.step(opt)
                opt.zero_grad()
            prof.step()


run()
