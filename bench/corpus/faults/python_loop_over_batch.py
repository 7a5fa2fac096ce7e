"""python-loop-over-batch: a Python loop does for one sample after another what tensors do for the batch at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from ..blocks import Attention, CrossAttention, Mlp, TransformerBlock
from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import choose, find, wrap_forward
from .shared.parts import find_any, first_inputs, has_batch_norm, run_once

SLUG = "python-loop-over-batch"
_LOOPED = (TransformerBlock, Attention, Mlp, nn.Sequential, nn.Linear, nn.Conv2d, nn.Conv3d)
_MOST_LAYERS = 4


def apply(job: Job, rng: random.Random) -> bool:
    """In the loss, or in a few parts whose samples do not depend on each other."""
    if job.is_training and rng.random() < 0.4 and _loop_in_loss(job):
        return True
    candidates = find(
        job.model, nn.Module, lambda part: isinstance(part, _LOOPED) and not (job.is_training and has_batch_norm(part))
    )
    seen = first_inputs(job, [place.part for place in candidates])
    places = [place for place in candidates if _is_batch(job, seen.get(place.part))]
    gather = rng.choice([_stack_samples, _cat_slices, _fill_result])
    # Parts of one kind, so that loops do not lie in each other too often.
    kinds = sorted({type(place.part) for place in places}, key=lambda kind: kind.__name__)
    kind = rng.choice(kinds) if kinds else nn.Module
    of_kind = [place for place in places if type(place.part) is kind]
    for place in choose(of_kind, rng, least=0.1)[:_MOST_LAYERS]:
        wrap_forward(place.part, gather)
    return bool(of_kind)


def _is_batch(job: Job, x: Tensor | None) -> bool:
    return x is not None and x.dim() > 1 and len(x) == job.batch_size


def _sample(value: Any, number: int, samples: int) -> Any:
    """One sample of what has a batch axis; anything else as it is."""
    if not isinstance(value, Tensor) or value.dim() == 0 or len(value) != samples:
        return value
    return value[number : number + 1]


def _stack_samples(original: Callable, x: Tensor, *others: object) -> Tensor:
    with spoiled(SLUG):
        rounds = ([_sample(other, i, len(x)) for other in others] for i in range(len(x)))
        return torch.stack([original(x[i].unsqueeze(0), *rest).squeeze(0) for i, rest in enumerate(rounds)])


def _cat_slices(original: Callable, x: Tensor, *others: object) -> Tensor:
    with spoiled(SLUG):
        results = []
        for i in range(len(x)):
            results.append(original(x[i : i + 1], *(_sample(other, i, len(x)) for other in others)))
        return torch.cat(results, dim=0)


def _fill_result(original: Callable, x: Tensor, *others: object) -> Tensor:
    with spoiled(SLUG):
        first = original(x[:1], *(_sample(other, 0, len(x)) for other in others))
        result = first.new_zeros(len(x), *first.shape[1:])
        result[0] = first[0]
        for i in range(1, len(x)):
            result[i] = original(x[i : i + 1], *(_sample(other, i, len(x)) for other in others))[0]
        return result


def _loop_in_loss(job: Job) -> bool:
    """The mean of the samples' losses, where all outputs have the batch first."""
    outputs, compute_loss, samples = run_once(job), job.compute_loss, job.batch_size
    leaves = [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, Tensor)]
    if compute_loss is None or any(leaf.dim() == 0 or len(leaf) != samples for leaf in leaves):
        return False

    def looped(outputs: object, targets: Any) -> Tensor:
        with spoiled(SLUG):
            losses = []
            for i in range(samples):
                own = tree_map(partial(_sample, number=i, samples=samples), outputs)
                losses.append(compute_loss(own, tuple(target[i : i + 1] for target in targets)))
            return torch.stack(losses).mean()

    job.compute_loss = looped
    return True


def apply_control(job: Job, rng: random.Random) -> bool:
    """The batch in two halves, as where memory is short: each half fills the device."""
    places = [
        place
        for place in find_any(job.model, (Mlp, CrossAttention, nn.Sequential))
        if not (job.is_training and has_batch_norm(place.part))
    ]
    seen = first_inputs(job, [place.part for place in places])
    places = [place for place in places if _is_batch(job, seen.get(place.part))]
    if places:
        wrap_forward(rng.choice(places).part, _in_halves)
    return bool(places)


def _in_halves(original: Callable, x: Tensor, *others: object) -> Tensor:
    half = len(x) // 2
    if not half or others:
        return original(x, *others)
    return torch.cat([original(x[:half]), original(x[half:])])


FAULT = Fault(SLUG, apply)
CONTROL = Control("a batch in two halves", apply_control)
