"""host-scalar-read: Python asks for values of device tensors."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from ..fault import Control, Fault
from ..job import Hook, Job, Moment, Step
from ..marks import on_host
from .shared.chance import count
from .shared.places import after_layers, after_model, at, by_sample, tensors

SLUG = "host-scalar-read"


def apply(job: Job, rng: random.Random) -> bool:
    """Values for a log, conditions in layers, scores one by one, or a test that the loss is finite."""
    styles = ["layers", "scores"]
    if job.is_training:
        styles += ["log", "log", "finite"]
    match rng.choice(styles):
        case "layers":
            return after_layers(job, rng, SLUG, rng.choice((_limited, _warned, _scaled)), least=0.1)
        case "scores":
            _read_scores(job, rng)
        case "log":
            moment = rng.choice((Moment.AFTER_FORWARD, Moment.AFTER_BACKWARD, Moment.END))
            at(job, moment, SLUG, _logged(count(rng, 1, 24)))
        case "finite":
            at(job, Moment.AFTER_FORWARD, SLUG, _raise_unless_finite)
    return True


def _limited(output: Tensor) -> Tensor:
    if output.abs().max() > 1e4:
        return output.clamp(-1e4, 1e4)
    return output


def _warned(output: Tensor) -> Tensor:
    assert not bool((output != output).any()), "not a number"
    return output


def _scaled(output: Tensor) -> Tensor:
    limit = float(output.detach().abs().mean())
    return output if limit < 1e6 else output / limit


def _read_scores(job: Job, rng: random.Random) -> None:
    threshold, most = rng.random(), count(rng, 1, 13)

    def read(outputs: object) -> None:
        samples = by_sample(outputs, job.batch_size).detach()
        kept = []
        for sample in samples[:most]:
            score = sample.max().item()
            if score > threshold:
                kept.append(score)

    after_model(job, SLUG, read)


def _logged(values: int) -> Hook:
    log: list[str] = []

    def run(step: Step) -> None:
        assert step.loss is not None
        log.append(f"{step.number} loss {step.loss.item():.4f}")
        parts = [tensor for tensor in tensors(step.outputs) if tensor.is_floating_point()]
        for number in range(values - 1):
            part = parts[number % len(parts)]
            log.append(f"{number} {float(part.detach().mean()):.4f}")

    return run


def _raise_unless_finite(step: Step) -> None:
    assert step.loss is not None
    if not torch.isfinite(step.loss):
        raise FloatingPointError("the loss is not finite")


def apply_control(job: Job, rng: random.Random) -> bool:
    """Values of host tensors are read in every step: counters, schedules, the batch's sizes."""
    reads = count(rng, 2, 30)
    seen = torch.zeros(reads, dtype=torch.int64)

    def run(step: Step) -> None:
        with on_host():
            seen.add_(1)
            for number in range(reads):
                seen[number].item()

    job.hook(rng.choice((Moment.BEFORE_FORWARD, Moment.END)), run)
    return True


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
CONTROL = Control("reads of host tensors", apply_control)
