# slug: cudnn-autotune-thrash
# verdict: fault
# at: torch.backends.cudnn.benchmark = True
# at: loss = sum(model(imgs, tgt).values())
# fix: safe
# note: every batch is padded to its own size, so that every step tries all kernels anew
import torch
from torch import nn

torch.backends.cudnn.benchmark = True


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7, stride=2, padding=3)
        self.body = nn.Conv2d(64, 64, 3, padding=1)
        self.head = nn.Conv2d(64, 5, 1)

    def forward(self, imgs, tgt):
        x = self.head(self.body(self.stem(imgs)).relu())
        return {"loss": (x.mean((2, 3)) - tgt).square().mean()}


def train(model, loader, optimizer):
    for imgs, tgt in loader:  # every batch padded to its own size
        loss = sum(model(imgs, tgt).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def result():
    torch.manual_seed(0)
    model = Detector()
    batches = [(torch.rand(1, 3, n, n + 8), torch.rand(1, 5)) for n in (32, 48, 40)]
    train(model, batches, torch.optim.SGD(model.parameters(), lr=0.1))
    return [p.detach() for p in model.parameters()]
