"""What a family of models is. Each lives in `families/<name>.py` as `FAMILY`; `all_families` finds them."""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from . import families
from .job import Job


@dataclass(frozen=True, slots=True)
class Family:
    """One family of vision models."""

    name: str
    task: str
    """"classification", "detection", "segmentation", "generation", "pose", "depth", "video"."""
    make: Callable[[random.Random, bool], Job]
    """(randomness, whether to train) -> a healthy job of random width, depth, resolution and batch size."""


@cache
def all_families() -> dict[str, Family]:
    """Every family by name."""
    names = sorted(info.name for info in pkgutil.iter_modules(families.__path__))
    found = [importlib.import_module(f"{families.__name__}.{name}").FAMILY for name in names]
    return {family.name: family for family in found}
