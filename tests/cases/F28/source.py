# slug: cast-thrash
# verdict: fault
# at: net = Net().to(device).eval()
# at: x = net(x)
# fix: unsafe
# note: DiT, inference: fp32 weights under autocast in inference mode
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 2 * dim)
        self.fc2 = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.fc2(nn.functional.gelu(self.fc1(self.norm(x))))


class Net(nn.Module):
    def __init__(self, dim=256, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def sample(x, steps, device, after=lambda: None):
    net = Net().to(device).eval()                               # fp32 parameters
    with torch.inference_mode(), torch.autocast(device, torch.bfloat16):
        for _ in range(steps):
            for _ in range(4):
                x = net(x)
            after()
    return x


def main(profiler):
    sample(torch.randn(2, 8, 256), 7, "cpu", profiler.step)


def result():
    torch.manual_seed(0)
    return sample(torch.randn(2, 8, 256), 2, "cpu").float()
