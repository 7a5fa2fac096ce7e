# slug: pageable-transfer
# verdict: fault
# at: batch = [to_tensor(im).to(dev) for im in images]
# fix: unsafe
# note: detection, inference: camera frames copied from pageable memory one by one
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self, queries=100):
        super().__init__()
        self.backbone = nn.Conv2d(3, 64, 16, 16)
        self.head = nn.Linear(64, queries)

    def forward(self, batch):
        maps = self.backbone(torch.stack(batch)).flatten(2).mean(-1)
        return self.head(maps)


def to_tensor(im):
    return torch.from_numpy(im).permute(2, 0, 1).float() / 255


def predict(model, images, dev):
    batch = [to_tensor(im).to(dev) for im in images]
    return model(batch)


def serve(model, requests, dev):
    with torch.inference_mode():
        return [predict(model, images, dev) for images in requests]
