"""pageable-transfer: batches are copied to the device from ordinary memory."""

from __future__ import annotations

import random

from ..fault import Control, Fault
from ..job import Job, Moment, Step
from ..marks import on_host, to_device

SLUG = "pageable-transfer"


def apply(job: Job, rng: random.Random) -> bool:
    """A loader without `pin_memory`; such copies wait, whatever is asked for."""
    if job.transfer.slug:
        return False
    job.transfer.pinned, job.transfer.blocking = False, rng.random() < 0.7
    job.transfer.slug = SLUG
    return True


def apply_control(job: Job, rng: random.Random) -> bool:
    """More is sent (a second view of the batch), but pinned and without waiting."""
    copies = rng.choice((1, 1, 2))

    def send(step: Step) -> None:
        with on_host():
            views = [tensor.detach().clone() for tensor in step.inputs for _ in range(copies)]
        for view in views:
            to_device(view, step.device, pinned=True, blocking=False)

    job.hook(Moment.BEFORE_FORWARD, send)
    return True


FAULT = Fault(SLUG, apply, on=frozenset({"device"}), excludes=frozenset({"blocking-transfer", "wide-dtype-transfer"}))
CONTROL = Control("more copies, pinned and not waited for", apply_control)
