"""explicit-synchronize: the program waits for the device at places of its own choice, mostly to take times."""

from __future__ import annotations

import random
import time

from torch import Tensor

from ..fault import Fault
from ..job import Job, Moment, Step
from .shared.chance import count
from .shared.device import synchronize
from .shared.places import after_layers, at

SLUG = "explicit-synchronize"


def apply(job: Job, rng: random.Random) -> bool:
    """Times of the step's parts, or of each of some layers."""
    if rng.random() < 0.5:
        return after_layers(job, rng, SLUG, _timed_layer, least=0.15)
    moments = list(Moment) if job.is_training else [Moment.BEFORE_FORWARD, Moment.AFTER_FORWARD, Moment.END]
    times: dict[Moment, float] = {}
    for moment in rng.sample(moments, count(rng, 1, len(moments))):

        def take(step: Step, moment: Moment = moment) -> None:
            synchronize(step.device)
            times[moment] = time.perf_counter()

        at(job, moment, SLUG, take)
    return True


def _timed_layer(output: Tensor) -> Tensor:
    synchronize(output.device)
    return output


FAULT = Fault(SLUG, apply, on=frozenset({"device"}))
