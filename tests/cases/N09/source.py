# slug: fp32-without-autocast
# verdict: control
# silent: yes
# note: detection on an A40: fp32 tensors already run on tensor cores in TF32, and the step waits for data
import torch
from torch import nn


class NanoDet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.stages = nn.Sequential(*(nn.Conv2d(width, width, 3, padding=1) for _ in range(8)))
        self.head = nn.Conv2d(width, 84, 1)

    def forward(self, x):
        return self.head(self.stages(torch.relu(self.stem(x))))


def fit(model, loader, optimizer, device):
    for images, target in loader:
        images, target = images.to(device), target.to(device)
        loss = (model(images) - target).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
