# slug: workers-respawned
# verdict: control
# silent: yes
# note: forked workers start quickly, and an epoch is long beside that: keeping them gained nothing on Linux
import torch
from torch import nn
from torch.utils.data import DataLoader


class Interpolator(nn.Module):
    def __init__(self, joints=24, width=512):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(joints * 6, width), nn.ReLU(), nn.Linear(width, joints * 6))

    def forward(self, poses):
        return self.body(poses.flatten(-2)).view_as(poses)


def fit(ds, epochs, profiler):
    loader = DataLoader(ds, num_workers=8, batch_size=64)
    model = Interpolator().cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    for epoch in range(epochs):
        for poses in loader:
            poses = poses.cuda(non_blocking=True)
            loss = (model(poses) - poses).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()
