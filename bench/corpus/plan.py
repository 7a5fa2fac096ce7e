"""Which programs the corpus runs: families, anti-patterns and devices, drawn so that each kind comes in many families.

A plan is the same for the same seed, number of runs, families and faults. Each run is made from its own plan alone, so
that runs may be made in any order and by any process.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from torchtraceap.analyzer.detector.training.dataset import TEST_DEVICES, TEST_FAMILIES

from .family import all_families
from .fault import Fault, all_controls, all_faults
from .job import Job
from .simulator.hardware import DEVICES, hardware_of

HEALTHY_EVERY = 4
"""One run of so many is healthy."""
TEST_EVERY = 4
"""One run of so many of each kind, and of the healthy ones, is of a family of the test."""
TRAINING_SHARE = 0.65
DEVICES_EACH = 2
"""Simulated devices of a run, besides the CPU's recording."""
_MORE = (0, 0, 1, 1, 1, 2, 2, 2, 3, 3)
"""Further anti-patterns of a run that has one, drawn evenly."""
SLOW_GB_PER_S = 400
"""A device whose memory is so fast has enough to do with a job's own multiple of its batch."""
_SPREAD = (0.25, 0.5, 1.0, 2.0)
_RANKS = (2, 4, 8)


@dataclass(frozen=True, slots=True)
class Plan:
    """One program to make, run, and simulate on some devices."""

    number: int
    seed: int
    training: bool
    slug: str
    """The anti-pattern that it is made for; "" for a healthy run."""
    more: int
    """How many others it is given, where it has room for them."""
    families: tuple[str, ...]
    """All of them, in the order in which they are tried: the first that has room for `slug` is taken."""


@dataclass(frozen=True, slots=True)
class Made:
    """A job with what was injected."""

    job: Job
    faults: tuple[str, ...]
    controls: tuple[str, ...]


def plan_runs(runs: int, seed: int) -> list[Plan]:
    """The plans of the first `runs` runs; a longer plan begins with a shorter one's."""
    rng = random.Random(seed)
    slugs = sorted(all_faults())
    rng.shuffle(slugs)
    families = sorted(all_families())
    rng.shuffle(families)
    others = [family for family in families if family not in TEST_FAMILIES]
    kept_for_test = [family for family in families if family in TEST_FAMILIES]
    plans = []
    for number in range(runs):
        its = random.Random(f"{seed} {number}")
        spoiled = number - number // HEALTHY_EVERY - 1
        is_healthy = number % HEALTHY_EVERY == 0
        # How often its kind has come before; each time the families begin elsewhere.
        turn = number // HEALTHY_EVERY if is_healthy else spoiled // len(slugs)
        place = 0 if is_healthy else spoiled % len(slugs)
        first, then = _turned(others, place + turn), _turned(kept_for_test, place + turn // TEST_EVERY)
        is_for_test = turn % TEST_EVERY == 1
        plans.append(
            Plan(
                number=number,
                seed=its.randrange(1 << 31),
                training=its.random() < TRAINING_SHARE,
                slug="" if is_healthy else slugs[place],
                more=0 if is_healthy else its.choice(_MORE),
                families=(*then, *first) if is_for_test else (*first, *then),
            )
        )
    return plans


def _turned(families: list[str], by: int) -> list[str]:
    at = by % max(len(families), 1)
    return families[at:] + families[:at]


def make(plan: Plan) -> Made:
    """The plan's job. Raises ValueError if no family has room for its anti-pattern."""
    rng = random.Random(plan.seed)
    torch.manual_seed(plan.seed)
    faults = all_faults()
    for training in (plan.training, not plan.training):
        for family in plan.families:
            job = all_families()[family].make(random.Random(rng.random()), training)
            _vary(job, rng)
            controls = _add_controls(job, rng)
            if not plan.slug:
                return Made(job, (), controls)
            if faults[plan.slug].apply(job, rng):
                return Made(job, _add_more(job, faults[plan.slug], plan.more, rng), controls)
    raise ValueError(f"no family has room for {plan.slug}")


def devices_of(plan: Plan, family: str) -> tuple[str, ...]:
    """The devices that a run is simulated on: families of the test on the devices of the test, others on others."""
    wanted = [name for name in DEVICES if (name in TEST_DEVICES) == (family in TEST_FAMILIES)]
    return tuple(random.Random(plan.seed).sample(wanted, min(DEVICES_EACH, len(wanted))))


def fill(multiplier: int, device: str, plan: Plan) -> int:
    """By how much the batch is multiplied on a device: people give fast ones more to do, some more, some less. A batch
    that is small on purpose stays so."""
    if multiplier == 1:
        return 1
    spread = random.Random(f"{plan.seed} {device}").choice(_SPREAD)
    return max(2, round(multiplier * spread * hardware_of(device).device.memory_gb_per_s / SLOW_GB_PER_S))


def costly(faults: Sequence[str], *, on_cpu: bool) -> tuple[str, ...]:
    """Those of the anti-patterns that cost something there."""
    return tuple(slug for slug in faults if ("cpu" if on_cpu else "device") in all_faults()[slug].on)


def _vary(job: Job, rng: random.Random) -> None:
    """What healthy programs differ in besides their models."""
    if job.is_training and rng.random() < 0.2:
        job.ranks = rng.choice(_RANKS)
    if job.is_training and rng.random() < 0.15:
        job.accumulate = 2


def _add_controls(job: Job, rng: random.Random) -> tuple[str, ...]:
    controls = rng.sample(all_controls(), min(rng.choice((0, 0, 1, 1, 2)), len(all_controls())))
    return tuple(control.name for control in controls if control.apply(job, rng))


def _add_more(job: Job, first: Fault, more: int, rng: random.Random) -> tuple[str, ...]:
    """Give the job further anti-patterns that go together; all that it has now."""
    chosen = [first]
    for slug in rng.sample(sorted(all_faults()), len(all_faults())):
        fault = all_faults()[slug]
        goes = all(slug not in one.excludes and one.slug not in fault.excludes for one in chosen)
        if len(chosen) > more:
            break
        if goes and slug != first.slug and fault.apply(job, rng):
            chosen.append(fault)
    return tuple(dict.fromkeys(slug for fault in chosen for slug in (fault.slug, *sorted(fault.implies))))
