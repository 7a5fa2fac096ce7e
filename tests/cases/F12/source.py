# slug: metric-on-host
# verdict: fault
# at: m = self.map_metric(preds, batch.gt)
# fix: unsafe
# note: detection, validation: the metric is called, so that it computes over everything seen so far in each step
import types

import torch
from torch import nn


class MeanAveragePrecision:
    """Keeps all boxes; `compute` goes through all of them."""

    def __init__(self):
        self.preds, self.targets = [], []

    def __call__(self, preds, targets):
        self.update(preds, targets)
        return self.compute()

    def update(self, preds, targets):
        self.preds.append(preds)
        self.targets.append(targets)

    def compute(self):
        hits = []
        for preds, targets in zip(self.preds, self.targets):
            for boxes, wanted in zip(preds, targets):
                overlap = (boxes[:, None, :2].minimum(wanted[None, :, :2]) > 0.3).all(-1)
                hits.append(overlap.any(1).float())
        hits = torch.cat(hits)
        precision = hits.cumsum(0) / torch.arange(1, len(hits) + 1)
        return {"map_50": precision.mean(), "map_75": precision.median()}

    def reset(self):
        self.preds, self.targets = [], []


class Detector:
    def __init__(self):
        self.net = nn.Sequential(nn.Conv2d(3, 16, 3, stride=4), nn.ReLU(), nn.Conv2d(16, 4, 3, stride=4))
        self.map_metric = MeanAveragePrecision()
        self.logged = {}

    def log(self, name, value):
        self.logged[name] = float(value)

    def post(self, out):
        return out.flatten(2).transpose(1, 2).sigmoid()

    def validation_step(self, batch, i):
        preds = self.post(self.net(batch.img))
        m = self.map_metric(preds, batch.gt)          # forward(): update AND compute over everything so far
        self.log("map50", m["map_50"])


def batches(count):
    torch.manual_seed(0)
    for _ in range(count):
        yield types.SimpleNamespace(img=torch.rand(8, 3, 64, 64), gt=torch.rand(8, 20, 4))


def validate(steps, after=lambda: None):
    detector = Detector()
    with torch.no_grad():
        for i, batch in enumerate(batches(steps)):
            detector.validation_step(batch, i)
            after()
    if hasattr(detector, "on_validation_epoch_end"):
        detector.on_validation_epoch_end()
    return detector.logged


def main(profiler):
    validate(7, profiler.step)


def result():
    torch.manual_seed(1)
    return validate(3)
