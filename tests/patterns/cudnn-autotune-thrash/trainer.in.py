# at: out = self.net(images)
# line: return pl.Trainer(max_epochs=cfg.epochs, benchmark=True)
import types

import torch


class Trainer:
    def __init__(self, max_epochs, benchmark):
        self.max_epochs = max_epochs


pl = types.SimpleNamespace(Trainer=Trainer)


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Identity()

    def training_step(self, images):
        out = self.net(images)
        return out.mean()


def make_trainer(cfg):
    return pl.Trainer(max_epochs=cfg.epochs, benchmark=True)


def run():
    make_trainer(types.SimpleNamespace(epochs=2))
    return Detector().training_step(torch.arange(6.0))
