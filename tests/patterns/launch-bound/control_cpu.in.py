# at: out = model(batch)
# device: cpu
# confirmed: no
from torchvision import models

model = models.resnet18()


def main(batch):
    out = model(batch)
    return out
