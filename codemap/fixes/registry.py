"""Finds the fixers: the modules of this folder that define `FIXER`, each named after its pattern."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from .base import Fixer

_PACKAGE = __name__.rpartition(".")[0]


@cache
def fixer_of(slug: str) -> Fixer | None:
    """The fixer of one pattern; None if it has none. Imports that one alone: few patterns show in one trace."""
    name = slug.replace("-", "_")
    return _fixer_in(name) if name in _module_names() else None


@cache
def fixers() -> Mapping[str, Fixer]:
    """All fixers by slug, in alphabetical order."""
    found = [fixer for name in _module_names() if (fixer := _fixer_in(name)) is not None]
    return MappingProxyType({fixer.slug: fixer for fixer in found})


@cache
def _module_names() -> tuple[str, ...]:
    return tuple(sorted(info.name for info in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__)))


def _fixer_in(name: str) -> Fixer | None:
    fixer = getattr(importlib.import_module(f"{_PACKAGE}.{name}"), "FIXER", None)
    return fixer if isinstance(fixer, Fixer) else None
