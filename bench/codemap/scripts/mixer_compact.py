import torch
from torch import nn
import torch.nn.functional as F


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim, token_hidden, dim_hidden):
        super().__init__()
        self.token_norm = nn.LayerNorm(dim)
        self.token_mix = nn.Sequential(nn.Linear(tokens, token_hidden), nn.GELU(), nn.Linear(token_hidden, tokens))
        self.channel_norm = nn.LayerNorm(dim)
        self.channel_mix = nn.Sequential(nn.Linear(dim, dim_hidden), nn.GELU(), nn.Linear(dim_hidden, dim))

    def forward(self, x):
        y = self.token_norm(x).transpose(1, 2)
        x = x + self.token_mix(y).transpose(1, 2)
        return x + self.channel_mix(self.channel_norm(x))


class Mixer(nn.Module):
    def __init__(self, image=32, patch=8, dim=64, depth=4, classes=10):
        super().__init__()
        n = (image // patch) ** 2
        self.stem = nn.Conv2d(3, dim, patch, patch)
        self.blocks = nn.Sequential(*(MixerBlock(n, dim, 32, 128) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        x = self.blocks(x)
        x = self.norm(x).mean(1)
        return self.head(x)


def lr_at(step, base=1e-3, warm=2, total=6):
    if step < warm:
        return base * (step + 1) / warm
    return base * 0.5 * (1 + torch.cos(torch.tensor((step - warm) / (total - warm) * 3.14159))).item()


def evaluate(model, batches):
    model.eval()
    correct = seen = 0
    with torch.no_grad():
        for x, y in batches:
            pred = model(x).argmax(-1)
            correct += (pred == y).sum().item()
            seen += len(y)
    model.train()
    return correct / seen


def main():
    torch.manual_seed(1)
    model = Mixer()
    opt = torch.optim.Adam(model.parameters())
    xs, ys = torch.randn(48, 3, 32, 32), torch.randint(10, (48,))
    for epoch in range(2):
        perm = torch.randperm(len(xs))
        for step, idx in enumerate(perm.split(16)):
            for g in opt.param_groups:
                g["lr"] = lr_at(epoch * 3 + step)
            x, y = xs[idx], ys[idx]
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item(), evaluate(model, zip(xs.split(16), ys.split(16))))


main()
