# slug: python-loop-over-batch
# verdict: fault
# at: for b in range(B):
# at: for j in range(J):
# at: for y in range(H):
# at: for x in range(W):
# fix: none
# note: pose estimation, training: target maps are drawn pixel by pixel
import math

import torch
from torch import nn

B, J, H, W, s = 2, 3, 8, 8, 1.5


def targets(kpts):
    hm = torch.zeros(B, J, H, W)
    for b in range(B):
        for j in range(J):
            cx, cy = kpts[b, j]
            for y in range(H):
                for x in range(W):
                    hm[b, j, y, x] = math.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * s * s))
    return hm


def main(profiler):
    net = nn.Conv2d(3, J, 3, padding=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(7):
        images, kpts = torch.rand(B, 3, H, W), torch.rand(B, J, 2) * W
        loss = (net(images) - targets(kpts)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        profiler.step()
