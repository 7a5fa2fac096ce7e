# slug: debug-mode-left-on
# verdict: fault
# at: torch.autograd.set_detect_anomaly(True)
# fix: safe
import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


class NeRF(nn.Module):
    def __init__(self, depth=6, width=64):
        super().__init__()
        sizes = [63] + [width] * depth
        self.pts_linears = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.rgb = nn.Linear(width, 4)

    def forward(self, h):
        for linear in self.pts_linears:
            h = torch.relu(linear(h))
        return self.rgb(h)


def step(model, optimizer, rays, target):
    rgb = model(rays)
    loss = torch.mean((rgb - target) ** 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def train(steps, profiler=None):
    torch.manual_seed(0)
    model = NeRF()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    for _ in range(steps):
        step(model, optimizer, torch.rand(256, 63), torch.rand(256, 4))
        if profiler is not None:
            profiler.step()
    return model


def main(profiler):
    train(8, profiler)


def result():
    return [p.detach() for p in train(3).parameters()]
