"""per-image-postprocess-loop: a model's output is taken apart in a Python loop that reads values in each round."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled, to_host
from .shared.parts import run_once
from .shared.places import largest

SLUG = "per-image-postprocess-loop"
_CANDIDATES = 64


def _read_best(one: Tensor) -> list[float]:
    """Value by value, each best one's score and place."""
    scores, places = one.flatten().sigmoid().topk(min(5, one.numel()))
    return [score.item() + place.item() for score, place in zip(scores, places, strict=True)]


def _read_over_threshold(one: Tensor) -> list[float]:
    """Those over a threshold, whose number only the device knows."""
    candidates = one.flatten()[:_CANDIDATES].float().softmax(0)
    kept = candidates[candidates > candidates.mean()]
    return kept.sort(descending=True).values.tolist()


def _read_statistics(one: Tensor) -> list[float]:
    """A summary of each image, number by number."""
    flat = one.flatten().float()
    if float(flat.max()) < float(flat.min()):
        return []
    return [float(flat.mean()), float(flat.std(correction=0)), flat.argmax().item()]


def apply(job: Job, rng: random.Random) -> bool:
    """At inference, after the model: image by image, over all of its output or its first rows."""
    if job.is_training or _images(job, run_once(job)) < 2:
        return False
    read, rounds = rng.choice([_read_best, _read_over_threshold, _read_statistics]), rng.choice([1, 1, 2, 4])
    postprocess = job.postprocess

    def looped(outputs: object) -> object:
        with spoiled(SLUG):
            results = []
            for one in largest(outputs)[: job.batch_size]:
                for part in one.flatten(0, -2).chunk(rounds) if one.dim() > 1 else (one,):
                    results.append(read(part))
        return results if postprocess is None else postprocess(outputs)

    job.postprocess = looped
    return True


def _images(job: Job, outputs: object) -> int:
    """How many images the largest output holds, if the batch is its first axis; else 0."""
    found = largest(outputs)
    return len(found) if found.dim() > 1 and len(found) == job.batch_size else 0


def apply_control(job: Job, rng: random.Random) -> bool:
    """At inference a summary of all images at once, read in one copy, then a loop over numbers on the host."""
    if job.is_training or _images(job, run_once(job)) < 2:
        return False
    postprocess = job.postprocess

    def at_once(outputs: object) -> object:
        flat = largest(outputs).flatten(1).float()
        summary = torch.stack([flat.mean(1), flat.amax(1), flat.amin(1)], dim=1)
        results = [sum(row) for row in to_host(summary).tolist()]
        return results if postprocess is None else postprocess(outputs)

    job.postprocess = at_once
    return True


FAULT = Fault(SLUG, apply, excludes=frozenset(("nms-per-class",)))
CONTROL = Control("one copy for all images", apply_control)
