"""Finds the rules: every module beside this one that defines `PATTERN`. Adding a pattern touches no other file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection
from functools import cache

from .. import patterns as package
from .base import Pattern


@cache
def all_patterns() -> tuple[Pattern, ...]:
    """Every pattern, in order of code.

    Raises ValueError when a module is not named after its slug or two patterns share a code: a mistake of whoever
    added the pattern, never of the input.
    """
    found: dict[str, Pattern] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        pattern = getattr(module, "PATTERN", None)
        if not isinstance(pattern, Pattern):
            continue
        if pattern.slug.replace("-", "_") != module_info.name:
            raise ValueError(f"pattern {pattern.slug!r} is defined in a module named {module_info.name!r}")
        if pattern.code in found:
            raise ValueError(f"{pattern.code} names both {found[pattern.code].slug!r} and {pattern.slug!r}")
        found[pattern.code] = pattern
    return tuple(found[code] for code in sorted(found))


def pattern_by_slug(slug: str) -> Pattern | None:
    """The pattern called `slug`; None if there is none."""
    return next((pattern for pattern in all_patterns() if pattern.slug == slug), None)


def selected_patterns(select: Collection[str], ignore: Collection[str]) -> tuple[Pattern, ...]:
    """The patterns named in `select` by slug or code (all if empty), less those named in `ignore`."""
    return tuple(
        pattern
        for pattern in all_patterns()
        if (not select or pattern.slug in select or pattern.code in select)
        and pattern.slug not in ignore
        and pattern.code not in ignore
    )
