# at: features.append(self.encoder_stage(x))
# confirmed: no
from torch import nn


class Backbone(nn.Module):
    def forward(self, x):
        features = []
        for stage in self.stages:
            features.append(self.encoder_stage(x))
        return features
