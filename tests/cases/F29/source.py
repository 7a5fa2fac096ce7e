# slug: wide-dtype-transfer
# verdict: fault
# at: x = torch.from_numpy(frames)
# at: y = net(x.to(device))
# fix: safe
# note: pose estimation, inference: normalised to float32 on the CPU before the copy
import numpy as np
import torch
from torch import nn


class Heatmaps(nn.Module):
    def __init__(self, joints=13):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.head = nn.Conv2d(16, joints, 1)

    def forward(self, x):
        return self.head(torch.relu(self.stem(x)))


def predict(net, frames, mean, std, device="cuda"):
    x = torch.from_numpy(frames).float().div_(255).sub_(mean).div_(std)     # CPU, fp32
    y = net(x.to(device))
    return y


def serve(net, batches, device="cuda"):
    mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
    with torch.inference_mode():
        return [predict(net, frames, mean, std, device) for frames in batches]


def result():
    torch.manual_seed(0)
    frames = np.random.default_rng(0).integers(0, 256, (2, 3, 16, 16), dtype=np.uint8)
    return serve(Heatmaps(), [frames], device="cpu")
