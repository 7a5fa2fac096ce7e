"""Finds the fixers: every module of this folder that defines `FIXER`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from .base import Fixer


@lru_cache(maxsize=1)
def fixers() -> Mapping[str, Fixer]:
    """All fixers by slug, in alphabetical order."""
    package = __name__.rpartition(".")[0]
    folder = importlib.import_module(package).__path__
    found: dict[str, Fixer] = {}
    for name in sorted(info.name for info in pkgutil.iter_modules(folder)):
        fixer = getattr(importlib.import_module(f"{package}.{name}"), "FIXER", None)
        if isinstance(fixer, Fixer):
            found[fixer.slug] = fixer
    return MappingProxyType(found)
