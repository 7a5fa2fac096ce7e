"""Counting what could not be used."""

from __future__ import annotations

from .model import NONE, Problem


class ProblemLog:
    """Collects problems by kind, keeping the first message and byte offset of each."""

    def __init__(self) -> None:
        self._by_kind: dict[str, Problem] = {}

    def add(self, kind: str, message: str, *, offset: int = NONE, count: int = 1) -> None:
        """Count `count` more problems of `kind`; `offset` is a byte offset in the uncompressed document."""
        if count <= 0:
            return
        first = self._by_kind.get(kind)
        if first is None:
            self._by_kind[kind] = Problem(kind, message, count, offset)
        else:
            self._by_kind[kind] = Problem(kind, first.message, first.count + count, first.offset)

    def all(self) -> tuple[Problem, ...]:
        """The problems, in the order in which each kind first occurred."""
        return tuple(self._by_kind.values())
