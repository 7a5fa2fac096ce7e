# at: logits = self(x)
# caller: loss = module.training_step(batch)
# line: module = Classifier()
# device: cpu
import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())

    def forward(self, x):
        return self.body(x).mean((2, 3))

    def training_step(self, batch):
        x, y = batch
        logits = self(x)
        return F.cross_entropy(logits, y)


def fit(module, batches):
    losses = []
    for batch in batches:
        loss = module.training_step(batch)
        losses.append(loss.detach())
    return losses


def main():
    torch.manual_seed(0)
    module = Classifier()
    return fit(module, [(torch.randn(2, 3, 8, 8), torch.tensor([0, 1]))])


run = main
