# at: out = model(batch)
# confirmed: no
import torch
from torchvision import models

model = models.resnet18().cuda()
model = torch.compile(model)


def main(batch):
    out = model(batch)
    return out
