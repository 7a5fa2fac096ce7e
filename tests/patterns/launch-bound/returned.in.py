# at: out = model(batch)
# line: return models.resnet18(weights="DEFAULT").cuda().eval()
# fix: unsafe
from torchvision import models


def load():
    return models.resnet18(weights="DEFAULT").cuda().eval()


def main(batches):
    model = load()
    for batch in batches:
        out = model(batch)
        print(out.shape)
