"""metric-on-host: a metric is worked out on the host in every step."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ..fault import Control, Fault
from ..job import Job
from ..marks import on_host, to_host
from .shared.chance import count
from .shared.places import after_model, by_sample

SLUG = "metric-on-host"
Metric = Callable[[Tensor], object]
"""Of scores, shape (samples, values)."""


def apply(job: Job, rng: random.Random) -> bool:
    """Confusion matrices, ranks, overlaps or distances, by torch on the CPU or by numpy, one to six of them."""
    metrics = [rng.choice((_confusion, _ranks, _overlap, _distances)) for _ in range(count(rng, 1, 6))]

    def run(outputs: object) -> None:
        scores = to_host(by_sample(outputs, job.batch_size))
        with on_host():
            for metric in metrics:
                metric(scores.float())

    after_model(job, SLUG, run)
    return True


def _confusion(scores: Tensor) -> np.ndarray:
    found = (scores.sigmoid() * 20).long().flatten().numpy()
    return np.bincount(found * 21 + np.roll(found, 1), minlength=21 * 21).reshape(21, 21)


def _ranks(scores: Tensor) -> float:
    order = scores.flatten().sort(descending=True).indices
    return float((order[: order.numel() // 2] % 2).float().mean())


def _overlap(scores: Tensor) -> list[float]:
    thresholds = torch.linspace(-1, 1, 10)
    masks = [scores > threshold for threshold in thresholds]
    return [float((one & other).sum() / (one | other).sum().clamp(min=1)) for one in masks for other in masks[:2]]


def _distances(scores: Tensor) -> float:
    array = scores.numpy()[:, :4096]
    return float(np.sqrt(((array[:, None] - array[None]) ** 2).sum(-1)).mean())


def apply_control(job: Job, rng: random.Random) -> bool:
    """The metric is kept up to date on the device, and read at the end of the epoch."""
    hits: list[Tensor] = []

    def run(outputs: object) -> None:
        scores = by_sample(outputs, job.batch_size).detach()
        found = (scores > scores.mean()).sum()
        hits[:] = [hits[0] + found] if hits else [found]

    after_model(job, "", run)
    return True


FAULT = Fault(SLUG, apply)
CONTROL = Control("metric kept on the device", apply_control)
