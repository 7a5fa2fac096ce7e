# at: out = model(batch)
# line: return models.resnet18(weights="DEFAULT").cuda().eval()
# fix: unsafe
from torchvision import models
import torch


def load():
    return torch.compile(models.resnet18(weights="DEFAULT").cuda().eval(), mode="reduce-overhead")


def main(batches):
    model = load()
    for batch in batches:
        out = model(batch)
        print(out.shape)
