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
        for module in self.model.modules():  # norms stay in float32
            if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
                module.to(torch.float16)

    @torch.no_grad()
    def __call__(self, images):
        with torch.autocast(device_type="cuda"):
            return self.model(images)
