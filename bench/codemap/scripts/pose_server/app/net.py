import torch
from torch import nn

BN_MOMENTUM = 0.1


class Bottleneck(nn.Module):
    def __init__(self, inp, mid, out, stride=1):
        super().__init__()
        self.a = nn.Conv2d(inp, mid, 1, bias=False)
        self.an = nn.BatchNorm2d(mid, momentum=BN_MOMENTUM)
        self.b = nn.Conv2d(mid, mid, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(mid, momentum=BN_MOMENTUM)
        self.c = nn.Conv2d(mid, out, 1, bias=False)
        self.cn = nn.BatchNorm2d(out, momentum=BN_MOMENTUM)
        self.down = None
        if stride > 1 or inp != out:
            self.down = nn.Sequential(nn.Conv2d(inp, out, 1, stride, bias=False), nn.BatchNorm2d(out, momentum=BN_MOMENTUM))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        residual = x
        y = self.relu(self.an(self.a(x)))
        y = self.relu(self.bn(self.b(y)))
        y = self.cn(self.c(y))
        if self.down is not None:
            residual = self.down(x)
        y += residual
        return self.relu(y)


class SimplePose(nn.Module):
    def __init__(self, joints=17, width=16, layers=(1, 2, 2)):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        )
        self.inp = width
        for i, n in enumerate(layers):
            setattr(self, f"layer{i + 1}", self._make(width * 2 ** i, n, 1 if i == 0 else 2))
        self.deconv = self._make_deconv(2, 32)
        self.final = nn.Conv2d(32, joints, 1)

    def _make(self, planes, n, stride):
        seq = [Bottleneck(self.inp, planes, planes * 2, stride)]
        self.inp = planes * 2
        seq.extend(Bottleneck(self.inp, planes, self.inp) for _ in range(n - 1))
        return nn.Sequential(*seq)

    def _make_deconv(self, n, ch):
        seq = []
        for _ in range(n):
            seq += [nn.ConvTranspose2d(self.inp, ch, 4, 2, 1, bias=False), nn.BatchNorm2d(ch), nn.ReLU(inplace=True)]
            self.inp = ch
        return nn.Sequential(*seq)

    def forward(self, x):
        x = self.stem(x)
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.deconv(x)
        return self.final(x)
