from __future__ import annotations

import torch
from torch import Tensor, nn


class Metric:
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.value = torch.zeros(())
        self.count = 0

    def update(self, x: Tensor, n: int = 1) -> None:
        self.value = self.value + x.detach() * n
        self.count += n

    def compute(self) -> float:
        return float(self.value / max(self.count, 1))


class BaseModule(nn.Module):
    """Everything a task has to override."""

    trainer = None

    def training_step(self, batch, batch_idx: int):
        raise NotImplementedError

    def validation_step(self, batch, batch_idx: int):
        return None

    def configure_optimizers(self):
        raise NotImplementedError

    def on_after_backward(self) -> None:
        pass

    def log(self, name: str, value: Tensor, n: int = 1) -> None:
        self.trainer.metrics.setdefault(name, Metric()).update(value, n)
