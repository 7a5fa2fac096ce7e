"""nms-per-class: non-maximum suppression in a loop, class by class or image by image."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import torch
from torch import Tensor

from .. import making
from ..boxes import batched_nms, nms
from ..fault import Fault
from ..job import Job
from ..marks import spoiled
from .shared.parts import run_once

SLUG = "nms-per-class"
Suppress = Callable[[Tensor, Tensor, Tensor, float], Tensor]


def _by_class(boxes: Tensor, scores: Tensor, classes: Tensor, threshold: float) -> Tensor:
    """Which boxes stay, best first."""
    with spoiled(SLUG):
        kept = []
        for number in classes.unique().tolist():
            index = torch.nonzero(classes == number).squeeze(1)
            kept.append(index[nms(boxes[index], scores[index], threshold)])
        return _best_first(torch.cat(kept), scores)


def _by_mask(boxes: Tensor, scores: Tensor, classes: Tensor, threshold: float) -> Tensor:
    """The same, all classes tried one after another, boxes chosen by a mask."""
    with spoiled(SLUG):
        stays = torch.zeros_like(scores, dtype=torch.bool)
        for number in torch.unique(classes):
            mask = classes == number
            index = torch.where(mask)[0]
            stays[index[nms(boxes[mask], scores[mask], threshold)]] = True
        return _best_first(torch.where(stays)[0], scores)


def _by_image(boxes: Tensor, scores: Tensor, classes: Tensor, threshold: float, images: int) -> Tensor:
    """The same, image by image; the boxes of each lie together."""
    with spoiled(SLUG):
        count = len(boxes) // images
        kept = []
        for start in range(0, len(boxes), count):
            part = slice(start, start + count)
            kept.append(start + batched_nms(boxes[part], scores[part], classes[part], threshold))
        return _best_first(torch.cat(kept), scores)


def _best_first(kept: Tensor, scores: Tensor) -> Tensor:
    return kept[scores[kept].argsort(descending=True)]


def apply(job: Job, rng: random.Random) -> bool:
    """At inference, where the outputs become detections."""
    postprocess = job.postprocess
    if job.is_training or postprocess is None or not _suppresses(job, postprocess):
        return False
    loop = rng.choice([_by_class, _by_class, _by_mask, partial(_by_image, images=job.batch_size)])

    def looped(outputs: object) -> object:
        with patch.object(making, "batched_nms", loop):
            return postprocess(outputs)

    job.postprocess = looped
    return True


def _suppresses(job: Job, postprocess: Callable[[object], object]) -> bool:
    """Whether detections are what is made of the outputs."""
    with patch.object(making, "batched_nms", wraps=making.batched_nms) as suppression:
        postprocess(run_once(job))
    return suppression.called


FAULT = Fault(SLUG, apply, excludes=frozenset(("per-image-postprocess-loop",)))
