# slug: float64-leak
# verdict: fault
# at: noise = np.random.normal(size=patch.shape)
# at: patch = patch.astype(np.float32) + noise
# at: x = torch.from_numpy(patch).to(dev).float()
# fix: safe
# note: seismic segmentation, training: numpy's default float64 goes into every batch
import numpy as np
import torch
from torch import nn

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class SeismicNet(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, stride=4), nn.ReLU(), nn.Conv2d(width, 1, 1))

    def forward(self, x):
        return self.body(x)


def make_batch(cube, step, size=4):
    patch = cube[(step * size) % len(cube) :][:size]
    noise = np.random.normal(size=patch.shape)          # float64
    patch = patch.astype(np.float32) + noise            # float64 again
    x = torch.from_numpy(patch).to(dev).float()
    return x


def train(model, cube, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(steps):
        x = make_batch(cube, step)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


def result():
    torch.manual_seed(0)
    np.random.seed(0)
    cube = np.random.default_rng(0).integers(0, 255, (16, 1, 32, 32)).astype(np.int16)
    return train(SeismicNet(), cube, 3).detach()
