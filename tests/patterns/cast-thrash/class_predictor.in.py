# at: return self.model(images)
# line: self.model = build_model(cfg)
# fix: unsafe
import torch
import torch.nn as nn


class Backbone(nn.Module):
    def forward(self, x):
        return x


def build_model(cfg):
    return Backbone()


class Predictor:
    def __init__(self, cfg):
        self.model = build_model(cfg)

    @torch.no_grad()
    def __call__(self, images):
        with torch.autocast(device_type="cuda"):
            return self.model(images)
