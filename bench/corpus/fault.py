"""What an injected anti-pattern is. Each lives in `faults/<slug with _>.py` as `FAULT`; `all_faults` finds them.

Packages among them (`faults/shared`) hold what several faults need.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from . import faults
from .job import Job


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of anti-pattern, and how a healthy job is given it."""

    slug: str
    """The catalogue's."""
    apply: Callable[[Job, random.Random], bool]
    """Changes the job, with randomly chosen extent and place; False, and nothing changed, where the job has no room
    for it. What it adds runs inside `marks.spoiled(slug)`."""
    spoils: Callable[[Timeline], BoolArray] | None = None
    """Events (rows of the timeline's trace) that the fault spoils besides those that were marked; for faults that are a
    setting (no autocast: every fp32 product and convolution)."""
    on: frozenset[str] = frozenset(("cpu", "device"))
    """Where it costs something: a fault of transfers does nothing on the CPU."""
    excludes: frozenset[str] = frozenset()
    """Slugs that make no sense beside it."""
    is_fact: bool = False
    """Any run may have it, asked or not, and `spoils` alone tells where; what other faults have spoiled is theirs."""
    implies: frozenset[str] = frozenset()
    """Slugs that the same change is as well, on some devices: without TF32, `tf32-off` is `fp32-without-autocast`."""


@dataclass(frozen=True, slots=True)
class Control:
    """Something that looks like an anti-pattern and is none: cheap, needed, or the right way round. `CONTROL` in the
    fault's module, where there is one."""

    name: str
    apply: Callable[[Job, random.Random], bool]


@cache
def all_faults() -> dict[str, Fault]:
    """Every fault by slug."""
    return {module.FAULT.slug: module.FAULT for module in _modules()}


@cache
def all_controls() -> tuple[Control, ...]:
    """Every control."""
    return tuple(module.CONTROL for module in _modules() if hasattr(module, "CONTROL"))


def _modules() -> list[ModuleType]:
    names = sorted(info.name for info in pkgutil.iter_modules(faults.__path__) if not info.ispkg)
    return [importlib.import_module(f"{faults.__name__}.{name}") for name in names]
