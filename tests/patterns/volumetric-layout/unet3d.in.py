# at: logits = model(scan)
# line: model = UNet3d(2).to(device)
import torch
from torch import nn


class UNet3d(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.down = nn.Conv3d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm3d(4)
        self.pool = nn.MaxPool3d(2)
        self.up = nn.Upsample(scale_factor=2, mode="trilinear")
        self.head = nn.Conv3d(8, classes, 1)

    def forward(self, x):
        x = torch.relu(self.norm(self.down(x)))
        return self.head(torch.cat([x, self.up(self.pool(x))], 1))


def fit(scans, device):
    model = UNet3d(2).to(device)
    for scan in scans:
        scan = scan.to(device)
        logits = model(scan)
        logits.square().mean().backward()
    grads = [p.grad for p in model.parameters()]
    model.eval()
    return [*grads, model(scans[0]).detach()]


def run():
    torch.manual_seed(0)
    return fit([torch.randn(1, 2, 4, 6, 6), torch.randn(1, 2, 4, 4, 8)], torch.device("cpu"))
