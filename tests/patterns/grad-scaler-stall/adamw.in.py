# at: scaler.step(opt)
# line: opt = torch.optim.AdamW(
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)


def train_step(x):
    loss = net(x).square().mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    return loss.detach()


def run():
    losses = [train_step(torch.ones(2, 4) * k) for k in (1.0, 2.0, float("inf"), 1.0)]
    return torch.stack(losses).nan_to_num(-1.0), [p.detach().clone() for p in net.parameters()]
