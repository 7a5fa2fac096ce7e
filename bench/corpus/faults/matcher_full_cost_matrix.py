"""matcher-full-cost-matrix: a matcher costs every prediction of the batch against every target of the batch."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from ..boxes import Matcher, pairwise_iou, to_corners
from ..fault import Fault
from ..job import Job
from ..marks import on_host, spoiled, to_device, to_host
from ..surgery import find, wrap_method

SLUG = "matcher-full-cost-matrix"


def full_costs(logits: Tensor, boxes: Tensor, classes: Tensor, targets: Tensor) -> Tensor:
    """(batch, queries, batch * objects), as DETR's own matcher."""
    chance, wanted = logits.flatten(0, 1).float().softmax(-1), targets.flatten(0, 1)
    flat = boxes.flatten(0, 1).float()
    overlap = pairwise_iou(to_corners(flat), to_corners(wanted))
    costs = 5 * torch.cdist(flat, wanted, p=1) - chance[:, classes.flatten()] - 2 * overlap
    return costs.view(*logits.shape[:2], -1)


def apply(job: Job, rng: random.Random) -> bool:
    """In training with a matcher; copied to the host at once, or image by image."""
    places = find(job.model, Matcher) if job.is_training else []
    at_once = rng.random() < 0.6
    for place in places:
        wrap_method(place.part, "costs", _costs)
        wrap_method(place.part, "assign", _assign_at_once if at_once else _assign_one_by_one)
    return bool(places)


def _costs(original: Callable, logits: Tensor, boxes: Tensor, classes: Tensor, targets: Tensor) -> Tensor:
    with spoiled(SLUG):
        return full_costs(logits, boxes, classes, targets)


def _assign_at_once(original: Callable, costs: Tensor) -> Tensor:
    with spoiled(SLUG):
        host = to_host(costs).numpy()
    return _found([host[i] for i in range(len(host))], costs.device)


def _assign_one_by_one(original: Callable, costs: Tensor) -> Tensor:
    with spoiled(SLUG):
        host = [to_host(one).numpy() for one in costs]
    return _found(host, costs.device)


def _found(costs: list[np.ndarray], device: torch.device) -> Tensor:
    """The cheapest queries for each image's own targets."""
    with on_host():
        objects = costs[0].shape[1] // len(costs)
        own = [cost[:, i * objects : (i + 1) * objects] for i, cost in enumerate(costs)]
        found = torch.from_numpy(np.stack([linear_sum_assignment(cost.T)[1] for cost in own]))
    return to_device(found, device)


FAULT = Fault(SLUG, apply)
