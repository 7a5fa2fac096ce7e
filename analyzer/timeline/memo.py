"""What several rules want to know of one timeline is worked out once, and forgotten with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .model import Timeline

T = TypeVar("T")


class Memo:
    """Answers about one timeline, by the function that worked them out."""

    def __init__(self) -> None:
        self._known: dict[Callable[..., Any], Any] = {}

    def ask(self, make: Callable[[Timeline], T], timeline: Timeline) -> T:
        """`make(timeline)`, worked out at the first call."""
        if make not in self._known:
            self._known[make] = make(timeline)
        return self._known[make]


def once(make: Callable[[Timeline], T]) -> Callable[[Timeline], T]:
    """A function of a timeline that is worked out once for each. Its result is shared: nobody may change it."""

    @wraps(make)
    def asked(timeline: Timeline) -> T:
        return timeline.memo.ask(make, timeline)

    return asked
