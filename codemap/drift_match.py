"""Which statement of an edited file is which of the file before: the same one, or none.

What cannot be told for sure has no answer. Equal statements are told apart by their neighbours, edited ones are known
by what they call and assign, renamed and moved functions by what they hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from .drift_scopes import is_within, pair_scopes
from .drift_units import Unit, Units

SAME_CONFIDENCE = 1.0
MOVED_CONFIDENCE = 0.9
EDITED_CONFIDENCE = 0.8
_LEAST_ALIKE = 0.6
_ALIKE_MARGIN = 0.15
_MOST_FUZZY = 40_000
"""Pairs of changed statements of one function that are compared."""
_MOST_EQUAL = 50_000
"""Pairs of equal statements of one function that are compared: a table of data written as calls would take minutes."""


@dataclass(frozen=True, slots=True)
class Match:
    """A statement of the old file and the one that it is now."""

    unit: Unit
    confidence: float
    is_edited: bool = False
    is_moved: bool = False
    """It stands in another function, or its function was renamed."""


class Matching:
    """The statements of `old` found in `new`."""

    def __init__(self, old: Units, new: Units) -> None:
        self._old = old
        self._new = new
        self._found: dict[Unit, Match] = {}
        self._taken: set[Unit] = set()
        self.scopes: Mapping[str, str] = pair_scopes(old, new)
        """Old function or class -> the one that it is now."""
        self._origins = {after: before for before, after in self.scopes.items()}
        for before, after in self.scopes.items():
            self._match_scope(old.scopes[before], new.scopes[after], is_moved=before != after)
        self._match_moved()
        for before, after in self.scopes.items():
            self._match_edited(old.scopes[before], new.scopes[after], is_moved=before != after)
        self._match_definitions()

    def of(self, unit: Unit) -> Match | None:
        """What a statement of the old file is now; None if it is gone or cannot be told."""
        return self._found.get(unit)

    @property
    def share(self) -> float:
        """Share of the old file's statements that were found, 0 to 1."""
        return len(self._found) / max(len(self._old.all), 1)

    def _take(self, before: Unit, after: Unit, confidence: float, *, is_edited: bool, is_moved: bool) -> None:
        self._found[before] = Match(after, confidence, is_edited, is_moved)
        self._taken.add(after)

    # Equal statements

    def _match_scope(self, before: Sequence[Unit], after: Sequence[Unit], is_moved: bool) -> None:
        before = [unit for unit in before if not unit.defines]
        after = [unit for unit in after if not unit.defines]
        counts = (Counter(u.text for u in before), Counter(u.text for u in after))
        if sum(count * counts[1][text] for text, count in counts[0].items()) > _MOST_EQUAL:
            return
        matcher = SequenceMatcher(None, [u.text for u in before], [u.text for u in after], autojunk=False)
        confidence = MOVED_CONFIDENCE if is_moved else SAME_CONFIDENCE
        for start, other, length in matcher.get_matching_blocks():
            run = [(start + i, other + i) for i in range(length)]
            has_unique = any(_is_single(before[i].text, counts) for i, _ in run)
            for i, j in run:
                if self._is_sure(before, after, i, j, counts, has_unique, length):
                    self._take(before[i], after[j], confidence, is_edited=False, is_moved=is_moved)

    def _is_sure(
        self,
        before: Sequence[Unit],
        after: Sequence[Unit],
        i: int,
        j: int,
        counts: tuple[Counter[str], Counter[str]],
        has_unique: bool,
        length: int,
    ) -> bool:
        text = before[i].text
        if _is_single(text, counts):
            # Short statements (`return x`) are deleted in one place and written in another: they need a neighbour.
            is_alone = length == 1 and (len(before) > 1 or len(after) > 1)
            return not is_alone or (self._is_single_in_files(before[i]) and _says_much(before[i]))
        around = [(_text(before, i + step), _text(after, j + step)) for step in (-1, 1)]
        is_held = has_unique and counts[0][text] == counts[1][text]
        return all(one == other and (is_held or _is_single(one, counts)) for one, other in around)

    def _is_single_in_files(self, unit: Unit) -> bool:
        return self._old.texts[unit.text] == self._new.texts[unit.text] == 1

    def _match_definitions(self) -> None:
        """The `def` and `class` statements of what was paired as a whole and has kept some of its statements."""
        defined = {unit.defines: unit for unit in self._new.all if unit.defines}
        counts = Counter(unit.defines for unit in self._old.all if unit.defines)
        others = Counter(unit.defines for unit in self._new.all if unit.defines)
        for unit in self._old.all:
            after = self.scopes.get(unit.defines) if unit.defines else None
            if after is None or after not in defined or not counts[unit.defines] == others[after] == 1:
                continue
            if self._is_kept(unit.defines, after):
                is_moved = after != unit.defines
                confidence = MOVED_CONFIDENCE if is_moved else SAME_CONFIDENCE
                is_edited = defined[after].text != unit.text
                self._take(unit, defined[after], confidence, is_edited=is_edited, is_moved=is_moved)

    def _is_kept(self, before: str, after: str) -> bool:
        """Whether enough of what a function or class held, and most of what is left of it, is in the paired one."""
        held = [u for u in self._old.all if not u.defines and is_within(u.scope, before)]
        left = [match.unit for unit in held if (match := self._found.get(unit)) is not None]
        there = sum(is_within(unit.scope, after) for unit in left)
        return 2 * there > len(left) and 2 * there >= len(held)

    def _match_moved(self) -> None:
        """Statements that are the only ones of their text in both files, wherever they stand now.

        Where another statement has come in the old place the old one may have been edited there, and what reads like
        it written anew elsewhere: then only what moved together with its neighbour is taken.
        """
        free = {unit.text: unit for unit in self._new.all if unit not in self._taken and not unit.defines}
        moved = {
            unit: free[unit.text]
            for unit in self._old.all
            if unit.text in free and unit not in self._found and not unit.defines and self._is_single_in_files(unit)
        }
        below = {one: other for group in self._new.scopes.values() for one, other in pairwise(group)}
        together: set[Unit] = set()
        for before in self._old.scopes.values():
            for one, other in pairwise(before):
                is_pair = one in moved and other in moved and below.get(moved[one]) is moved[other]
                if is_pair and (_says_much(one) or _says_much(other)):
                    together |= {one, other}
        found = {one: match.unit for one, match in self._found.items()}
        origin = {after: before for before, after in found.items()}
        left = [
            unit
            for unit, after in moved.items()
            if unit in together
            or (_says_much(unit) and not self._has_successor(unit, found) and not self._has_predecessor(after, origin))
        ]
        for unit in left:
            is_moved = unit.scope != moved[unit].scope
            self._take(unit, moved[unit], MOVED_CONFIDENCE, is_edited=False, is_moved=is_moved)

    def _has_successor(self, unit: Unit, found: Mapping[Unit, Unit]) -> bool:
        """Whether a new statement stands where an old one stood."""
        scope = self.scopes.get(unit.scope)
        if scope is None:
            return False
        between = _between(unit, self._old.scopes[unit.scope], self._new.scopes[scope], found)
        return any(one not in self._taken for one in between)

    def _has_predecessor(self, after: Unit, origin: Mapping[Unit, Unit]) -> bool:
        """Whether an old statement that is not found stood where a new one stands."""
        scope = self._origins.get(after.scope)
        if scope is None:
            return False
        between = _between(after, self._new.scopes[after.scope], self._old.scopes[scope], origin)
        return any(one not in self._found and one.text != after.text for one in between)

    # Edited statements

    def _match_edited(self, before: Sequence[Unit], after: Sequence[Unit], is_moved: bool) -> None:
        """Edited statements: next to one that was found already, and like no other."""
        before = [unit for unit in before if not unit.defines]
        after = [unit for unit in after if not unit.defines]
        olds = [u for u in before if u not in self._found and not self._new.texts[u.text]]
        news = [u for u in after if u not in self._taken and not self._old.texts[u.text]]
        if not olds or not news or len(olds) * len(news) > _MOST_FUZZY:
            return
        names = (_names(before), _names(after))
        scores = {(a, b): score for a in olds for b in news if (score := self._alike(a, b, *names)) > 0}
        sure = [
            (a, b)
            for (a, b), score in scores.items()
            if score >= _LEAST_ALIKE
            and all(score - rival >= _ALIKE_MARGIN for (c, d), rival in scores.items() if (c is a) != (d is b))
        ]
        while near := [(a, b) for a, b in sure if a not in self._found and self._is_next_to(a, b, before, after)]:
            for a, b in near:
                self._take(a, b, EDITED_CONFIDENCE, is_edited=True, is_moved=is_moved)

    def _is_next_to(self, a: Unit, b: Unit, before: Sequence[Unit], after: Sequence[Unit]) -> bool:
        """Whether a neighbour of `a` is now the neighbour of `b`."""
        i, j = before.index(a), after.index(b)
        return any(
            (match := self._found.get(before[i + step])) is not None and match.unit is after[j + step]
            for step in (-1, 1)
            if 0 <= i + step < len(before) and 0 <= j + step < len(after)
        )

    def _alike(self, a: Unit, b: Unit, before: frozenset[str], after: frozenset[str]) -> float:
        """How alike two statements are, 0 to 1: the share of their words, rare ones counting most.

        `before` and `after` are the words of the functions that hold them.
        """
        if a.kind is not b.kind or not _do_the_same(a, b):
            return 0.0
        if a.targets != b.targets and not (self._has_its_value(a, b) or _is_renamed(a, b, before, after)):
            return 0.0
        shared, every = a.words & b.words, a.words | b.words
        if not every:
            return 0.0
        # Counted as both halves of the pair, so that a word that only one of them has costs half.
        both = 2 * sum(map(self._weight, shared))
        return both / (both + sum(map(self._weight, every - shared)))

    def _has_its_value(self, a: Unit, b: Unit) -> bool:
        """Whether both compute the same, which no other statement of either file does."""
        return a.value == b.value != "" and self._old.values[a.value] == self._new.values[a.value] == 1

    def _weight(self, word: str) -> float:
        return 1 / max(self._old.frequency[word], self._new.frequency[word], 1)


def _do_the_same(a: Unit, b: Unit) -> bool:
    """Whether two statements call and compute about the same, or assign the same by the same operators."""
    if a.calls or b.calls:
        shared = sum((Counter(a.calls) & Counter(b.calls)).values())
        is_half = 2 * shared >= max(len(a.calls), len(b.calls))
        is_known = bool(set(a.targets) & set(b.targets)) or bool(a.words & b.words - set(a.calls))
        return is_half and shared > 0 and is_known
    if a.operators != b.operators:
        return False
    return bool(set(a.targets) & set(b.targets)) or a.targets == b.targets == ()


def _says_much(unit: Unit) -> bool:
    """Whether the statement is unlikely to be written twice."""
    return len(unit.words) + len(unit.operators) > 2


def _is_renamed(a: Unit, b: Unit, before: frozenset[str], after: frozenset[str]) -> bool:
    """Whether what `a` assigns to has another name now, all over its function."""
    if len(a.targets) != len(b.targets) or not a.targets:
        return False
    return all(
        one == other or not (one in after or other in before) for one, other in zip(a.targets, b.targets, strict=True)
    )


def _names(units: Sequence[Unit]) -> frozenset[str]:
    return frozenset().union(*(unit.words for unit in units))


def _between(unit: Unit, own: Sequence[Unit], others: Sequence[Unit], found: Mapping[Unit, Unit]) -> Sequence[Unit]:
    """Those of `others` between the ones that the nearest neighbours of `unit` in `own` are there."""
    position = {other: number for number, other in enumerate(others)}
    place = own.index(unit)
    known = [position.get(found[one]) if one in found else None for one in own]
    above = next((p for p in reversed(known[:place]) if p is not None), -1)
    below = next((p for p in known[place + 1 :] if p is not None), len(others))
    return others[above + 1 : below]


def _text(units: Sequence[Unit], number: int) -> str:
    """The text of a statement of a function; "" before the first and after the last."""
    return units[number].text if 0 <= number < len(units) else ""


def _is_single(text: str, counts: tuple[Counter[str], Counter[str]]) -> bool:
    return not text or counts[0][text] == counts[1][text] == 1
