"""data-dependent-shape: operators whose results' sizes depend on values, which the host has to wait for."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from ..fault import Control, Fault
from ..job import Job
from .shared.chance import count
from .shared.places import after_layers, after_model, by_sample

SLUG = "data-dependent-shape"


def apply(job: Job, rng: random.Random) -> bool:
    """Hard examples picked from the outputs, for each sample or for all, or statistics over what layers select."""
    pick = rng.choice((_masked, _selected, _nonzero, _where, _unique, _repeated))
    if rng.random() < 0.5:
        return after_layers(job, rng, SLUG, lambda output: output + 0.0 * pick(output).to(output.dtype), least=0.1)
    rounds, each = count(rng, 1, 6), rng.random() < 0.4

    def run(outputs: object) -> Tensor:
        samples = by_sample(outputs, job.batch_size)
        parts = list(samples) if each else [samples]
        return 0.01 * torch.stack([pick(part).float() for part in parts for _ in range(rounds)]).sum()

    after_model(job, SLUG, run)
    return True


def _threshold(values: Tensor) -> Tensor:
    return values.detach() > values.detach().mean()


def _masked(values: Tensor) -> Tensor:
    return values[_threshold(values)].sum() / values.numel()


def _selected(values: Tensor) -> Tensor:
    return torch.masked_select(values, _threshold(values)).sum() / values.numel()


def _nonzero(values: Tensor) -> Tensor:
    flat = values.flatten()
    return flat[torch.nonzero(_threshold(flat)).squeeze(1)].sum() / flat.numel()


def _where(values: Tensor) -> Tensor:
    flat = values.flatten()
    (found,) = torch.where(_threshold(flat))
    return flat.index_select(0, found).sum() / flat.numel()


def _unique(values: Tensor) -> Tensor:
    classes = (values.detach().flatten()[:4096].float() * 4).round().unique()
    return values.sum() * 0.0 + classes.numel()


def _repeated(values: Tensor) -> Tensor:
    lines = values.flatten(0, -2) if values.dim() > 1 else values[None]
    times = (lines.detach().float().sum(dim=-1) > 0).long()
    return lines.repeat_interleave(times, dim=0).sum() / values.numel()


def apply_control(job: Job, rng: random.Random) -> bool:
    """The same statistics at fixed sizes: what is not selected counts as zero."""

    def change(output: Tensor) -> Tensor:
        kept = torch.where(_threshold(output), output, torch.zeros_like(output))
        return output + 0.0 * kept.mean()

    return after_layers(job, rng, "", change, least=0.1)


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
CONTROL = Control("masking at fixed sizes", apply_control)
