# at: return self.net(x)
# caller: pred = model(x)
# line: pred = model(x)
# fix: unsafe
import torch
from torch import nn


class Wrap(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.net(x)


def train(loader, epochs):
    model = Wrap().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            # forward
            with torch.autocast("cuda", dtype=torch.bfloat16):
                pred = model(x)  # logits

                loss = nn.functional.cross_entropy(
                    pred,
                    y,
                )
                note = """kept
as it is"""
            opt.zero_grad()
            loss.backward()
            opt.step()
