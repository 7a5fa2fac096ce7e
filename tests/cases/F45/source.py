# slug: cache-emptied-in-loop
# verdict: fault
# at: gc.collect(); torch.cuda.empty_cache()
# fix: safe
import gc

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.inp = nn.Conv3d(4, channels, 3, padding=1)
        self.out = nn.Conv3d(channels, 4, 3, padding=1)

    def forward(self, latents, t):
        return self.out(torch.nn.functional.silu(self.inp(latents)) * (1 + t.view(-1, 1, 1, 1, 1)))


def train(steps, profiler=None):
    torch.manual_seed(0)
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(steps):
        latents, noise, t = torch.rand(2, 4, 4, 16, 16), torch.randn(2, 4, 4, 16, 16), torch.rand(2)
        loss = (model(latents + noise, t) - noise).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gc.collect(); torch.cuda.empty_cache()
        if profiler is not None:
            profiler.step()
    return model


def main(profiler):
    train(8, profiler)


def result():
    return [p.detach() for p in train(2).parameters()]
