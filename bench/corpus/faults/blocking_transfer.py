"""blocking-transfer: the host waits for copies that it could let run."""

from __future__ import annotations

import random

from ..fault import Fault
from ..job import Job

SLUG = "blocking-transfer"


def apply(job: Job, rng: random.Random) -> bool:
    """`.to(device)` of pinned batches, without `non_blocking`."""
    if job.transfer.slug:
        return False
    job.transfer.pinned, job.transfer.blocking = True, True
    job.transfer.slug = SLUG
    return True


FAULT = Fault(SLUG, apply, on=frozenset({"device"}), excludes=frozenset({"pageable-transfer", "wide-dtype-transfer"}))
