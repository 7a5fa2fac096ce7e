"""work-between-steps: images, histograms or checkpoints are written in every step."""

from __future__ import annotations

import io
import json
import random
import tempfile

import torch
from torch import Tensor

from ..fault import Control, Fault
from ..job import Hook, Job, Moment, Step
from ..marks import on_host, to_host
from .shared.chance import count
from .shared.places import at, largest, tensors

SLUG = "work-between-steps"


def apply(job: Job, rng: random.Random) -> bool:
    """A checkpoint, histograms of weights, pictures, or a log file, at the end of every step."""
    styles = [_pictures(count(rng, 1, 16)), _log(rng, count(rng, 4, 200))]
    if job.is_training:
        styles += [_checkpoint(job, rng), _histograms(count(rng, 2, 40))]
    at(job, Moment.END, SLUG, rng.choice(styles))
    return True


def _checkpoint(job: Job, rng: random.Random) -> Hook:
    names = list(job.model.state_dict())
    kept = frozenset(rng.sample(names, count(rng, max(1, len(names) // 8), len(names))))

    def run(step: Step) -> None:
        state = {name: to_host(value) for name, value in step.job.model.state_dict().items() if name in kept}
        with on_host(), tempfile.TemporaryFile() as file:
            torch.save(state, file)

    return run


def _histograms(parameters: int) -> Hook:
    def run(step: Step) -> None:
        for parameter in list(step.job.model.parameters())[:parameters]:
            values = to_host(parameter)
            with on_host():
                torch.histc(values.float(), bins=64).tolist()

    return run


def _pictures(images: int) -> Hook:
    def run(step: Step) -> None:
        found = to_host(largest((step.outputs, step.inputs, step.job.model.state_dict())))
        with on_host():
            for part in found.detach().float().flatten(1)[:images] if found.dim() > 1 else [found.float()]:
                low, high = part.min(), part.max()
                picture = ((part - low) / (high - low + 1e-6) * 255).to(torch.uint8)
                io.BytesIO().write(picture.numpy().tobytes())

    return run


def _log(rng: random.Random, lines: int) -> Hook:
    syncs = rng.random() < 0.5

    def run(step: Step) -> None:
        values = [float(to_host(tensor).float().mean()) for tensor in _few(step)] if syncs else [float(step.number)]
        with tempfile.TemporaryFile("w") as file:
            for line in range(lines):
                file.write(json.dumps({"step": step.number, "line": line, "values": values}) + "\n")
                file.flush()

    return run


def _few(step: Step) -> list[Tensor]:
    return [tensor for tensor in tensors((step.outputs, step.loss)) if tensor.is_floating_point()][:4]


def apply_control(job: Job, rng: random.Random) -> bool:
    """The same, but every fiftieth step, and only times are noted in the others."""
    dear, every = _pictures(8), rng.choice((50, 100, 500))
    times: list[int] = []

    def run(step: Step) -> None:
        times.append(step.number)
        if step.number % every == every - 1:
            dear(step)

    job.hook(Moment.END, run)
    return True


FAULT = Fault(SLUG, apply)
CONTROL = Control("log every so many steps", apply_control)
