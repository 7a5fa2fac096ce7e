# at: mirrored = self.net(batch.flip(-1))
# confirmed: no
import torch.nn as nn


class Predictor:
    """Runs the model on the images and on their mirror images: meant."""

    def __init__(self):
        self.net = nn.Linear(8, 8)

    def infer(self, batch):
        heat = self.net(batch)
        mirrored = self.net(batch.flip(-1))
        return (heat + mirrored.flip(-1)) * 0.5
