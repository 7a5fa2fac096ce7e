"""Which function or class of an edited file is which of the file before."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Set
from itertools import accumulate

from .drift_units import Units

_LEAST_SCOPE = 0.6
"""Share of a function's statements that a renamed or moved one still has."""
_SCOPE_MARGIN = 0.2


class _Held:
    """What the functions and classes of a file hold, with all that is nested in them; trivial statements left out."""

    def __init__(self, units: Units) -> None:
        self.classes = {u.defines for u in units.all if u.defines and isinstance(u.node, ast.ClassDef)}
        self.content: dict[str, Counter[str]] = {name: Counter() for name in units.scopes}
        """How often each holds a statement, by its text."""
        for unit in units.all:
            if len(unit.words) > 1 and not unit.defines:
                for name in accumulate(unit.scope.split("."), "{}.{}".format):
                    self.content[name][unit.text] += 1
        self._count = {name: content.total() for name, content in self.content.items()}
        self._holders: dict[str, list[str]] = {}
        for name, content in self.content.items():
            for text in content:
                self._holders.setdefault(text, []).append(name)

    def alike(self, content: Counter[str], is_class: bool, among: Set[str]) -> dict[str, float]:
        """How much of a content the functions or classes `among` have; those that have nothing of it are left out."""
        shared: dict[str, int] = {}
        for text, count in content.items():
            for name in self._holders.get(text, ()):
                if name in among and (name in self.classes) == is_class:
                    shared[name] = shared.get(name, 0) + min(count, self.content[name][text])
        total = content.total()
        return {name: 2 * count / (total + self._count[name]) for name, count in shared.items()}


def pair_scopes(old: Units, new: Units) -> dict[str, str]:
    """Each function and class of `old` with the one of `new` that it is: by name, else by what it holds."""
    pairs = {name: name for name in old.scopes if name in new.scopes}
    lost = sorted((name for name in old.scopes if name not in pairs), key=lambda name: name.count("."))
    free = {name for name in new.scopes if name not in pairs}
    if not lost or not free:
        return pairs
    held, other_held = _Held(old), _Held(new)
    for name in lost:
        if name in pairs:
            continue
        renamed = _best_scope(name, {other for other in lost if other not in pairs}, free, held, other_held)
        if renamed is None:
            continue
        nested = [other for other in old.scopes if is_within(other, name)]
        below = {other: renamed + other.removeprefix(name) for other in nested}
        for before, after in below.items():
            if before not in pairs and after in free:
                pairs[before] = after
                free.remove(after)
    return pairs


def _best_scope(name: str, lost: Set[str], free: Set[str], old: _Held, new: _Held) -> str | None:
    """The only one of the functions or classes `free` of `new` that holds about what `name` of `old` holds, and that
    no other one of those `lost` from `old` fits as well."""
    is_class = name in old.classes
    scores = new.alike(old.content[name], is_class, free)
    best = max(scores, key=lambda other: (scores[other], other), default="")
    if not best or scores[best] < _LEAST_SCOPE:
        return None
    rivals = [*old.alike(new.content[best], is_class, lost - {name}).values()]
    rivals += [score for other, score in scores.items() if other != best]
    return None if any(scores[best] - rival < _SCOPE_MARGIN for rival in rivals) else best


def is_within(scope: str, outer: str) -> bool:
    """Whether a function or class is another one or nested in it, by their qualified names."""
    return scope == outer or scope.startswith(f"{outer}.")
