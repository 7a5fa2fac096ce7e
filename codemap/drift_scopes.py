"""Which function or class of an edited file is which of the file before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .drift_units import Units

_LEAST_SCOPE = 0.6
"""Share of a function's statements that a renamed or moved one still has."""
_SCOPE_MARGIN = 0.2


def pair_scopes(old: Units, new: Units) -> dict[str, str]:
    """Each function and class of `old` with the one of `new` that it is: by name, else by what it holds."""
    pairs = {name: name for name in old.scopes if name in new.scopes}
    free = [name for name in new.scopes if name not in pairs]
    for name in sorted((name for name in old.scopes if name not in pairs), key=lambda name: name.count(".")):
        if name in pairs:
            continue
        renamed = _best_scope(name, [other for other in old.scopes if other not in pairs], free, old, new)
        if renamed is None:
            continue
        nested = [other for other in old.scopes if is_within(other, name)]
        below = {other: renamed + other.removeprefix(name) for other in nested}
        for before, after in below.items():
            if before not in pairs and after in free:
                pairs[before] = after
                free.remove(after)
    return pairs


def _best_scope(name: str, lost: Iterable[str], free: Iterable[str], old: Units, new: Units) -> str | None:
    """The only one of the functions or classes `free` of `new` that holds about what `name` of `old` holds, and that
    no other one of those `lost` from `old` fits as well."""
    before = _content(old, name)
    is_class = _is_class(old, name)
    scores = sorted(
        ((_overlap(before, _content(new, other)), other) for other in free if _is_class(new, other) == is_class),
        reverse=True,
    )
    if not scores or scores[0][0] < _LEAST_SCOPE:
        return None
    score, best = scores[0]
    others = [other for other in lost if other != name and _is_class(old, other) == is_class]
    rivals = [_overlap(_content(old, other), _content(new, best)) for other in others] + [s for s, _ in scores[1:2]]
    return None if any(score - rival < _SCOPE_MARGIN for rival in rivals) else best


def _content(units: Units, name: str) -> Counter[str]:
    """The statements of a function or class and of all nested in it, without trivial ones."""
    return Counter(
        unit.text
        for scope, group in units.scopes.items()
        if is_within(scope, name)
        for unit in group
        if len(unit.words) > 1 and not unit.defines
    )


def _overlap(a: Counter[str], b: Counter[str]) -> float:
    total = sum(a.values()) + sum(b.values())
    return 2 * sum((a & b).values()) / total if total else 0.0


def _is_class(units: Units, name: str) -> bool:
    return any(unit.defines == name and unit.text.startswith("ClassDef") for unit in units.all)


def is_within(scope: str, outer: str) -> bool:
    """Whether a function or class is another one or nested in it, by their qualified names."""
    return scope == outer or scope.startswith(f"{outer}.")
