# at: return self.net(x)
# line: self.net = build().to("cpu").eval()
# device: cpu
import torch
import torch.nn as nn


def conv_bn(a, b, k=3):
    return nn.Sequential(nn.Conv2d(a, b, k, padding=k // 2), nn.BatchNorm2d(b))


class Tower(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.first = conv_bn(3, width)
        self.second = conv_bn(width, width, k=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return self.norm(self.second(self.first(x)).relu())


def build():
    torch.manual_seed(3)
    return Tower()


class Predictor:
    def __init__(self):
        self.net = build().to("cpu").eval()

    @torch.inference_mode()
    def __call__(self, x):
        return self.net(x)


def run():
    return Predictor()(torch.rand(1, 3, 9, 9) - 0.5)
