# at: loss = net(images).mean()
import torch
from torch import nn


class Config:
    compile: bool = True
    multi_scale: bool = True


def main(cfg, dev):
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GELU())
    use_compile = cfg.compile and dev.type == "cuda" and not cfg.multi_scale
    net = torch.compile(net) if use_compile else net
    loss = net(images).mean()
