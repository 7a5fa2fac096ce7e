# slug: grad-scaler-stall
# verdict: fault
# at: opt = torch.optim.AdamW(
# at: scaler.step(opt)
# fix: safe
# note: detection, fp16 training
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self, width=32, boxes=4):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width))
        self.head = nn.Linear(width, boxes)

    def forward(self, x):
        return self.head(self.backbone(x))


def fit(net, batches, device="cuda"):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler(device)
    for x, target in batches:
        with torch.autocast(device, torch.float16 if device == "cuda" else torch.bfloat16):
            loss = (net(x) - target).abs().mean()
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(opt)            # sum(found_inf.item()) -> host waits for backward
        scaler.update()
    return loss


def result():
    torch.manual_seed(1)
    net = Detector()
    batches = [(torch.randn(8, 16), torch.randn(8, 4)) for _ in range(4)]
    loss = fit(net, batches, device="cpu")
    return loss.detach(), [p.detach() for p in net.parameters()]
