# at: out = net(images)
# confirmed: no
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--compile", action="store_true")
args = parser.parse_args()
net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GELU())
if args.compile:
    net = torch.compile(net)
out = net(images)
