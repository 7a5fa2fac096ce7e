# at: self.history["logits"].append(logits)
# fix: unsafe
from torch import nn


class Trainer:
    def __init__(self, net: nn.Module):
        self.net = net
        self.history = {"logits": []}

    def step(self, batch, target):
        logits = self.net(batch)
        self.history["logits"].append(logits.detach())
        loss = nn.functional.cross_entropy(logits, target)
        loss.backward()
        return loss.item()
