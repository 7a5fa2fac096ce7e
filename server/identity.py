"""Whether a place still shows the statement that it was put on. Knows texts and places, not findings.

Edits move a place with the text round it, but what was put where a deleted statement stood is another statement. A
place remembers its lines as they were: it is lost where they read too differently, and comes back with them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .documents import HasSpan, Spanned

_WORD = re.compile(r"\w+")
_LEAST_KEPT = 0.5
"""Share of its words that an edited statement keeps, rare ones counting most."""
_NUMBER = 0.2
"""What a number counts beside a name."""


@dataclass(frozen=True, slots=True)
class Written:
    """The lines of a place as they were when it was known to be right."""

    lines: tuple[str, ...]
    """Without white space at their ends."""
    indent: int
    """Of the first line: columns are kept relative to it."""
    last_indent: int
    column: int
    end_column: int
    is_single: bool
    """Whether these lines stand in the file once."""
    words: tuple[tuple[str, float], ...]
    """Its names and numbers, each with what it weighs: the rarer in the file, the more."""
    rare: frozenset[str]
    """The names that the file had once: those of other statements do not belong here."""


@dataclass(frozen=True, slots=True)
class Words:
    """The names and numbers of a text."""

    count: Counter[str]
    rare: frozenset[str]
    """Names that stand in it once."""


def words_of(text: str) -> Words:
    """The names and numbers of a text."""
    count = Counter(_WORD.findall(text))
    return Words(count, frozenset(word for word, times in count.items() if times == 1 and not word[0].isdigit()))


def written(lines: Sequence[str], place: HasSpan, words: Words) -> Written | None:
    """What stands at a place of a text, whose words are `words`; `lines[0]` is line 1. None where nothing does."""
    own = _own_lines(lines, place)
    stripped = tuple(line.strip() for line in own)
    if not any(stripped):
        return None
    weights = {word: _weight(word, words.count) for line in stripped for word in _WORD.findall(line)}
    return Written(
        stripped,
        _indent(own[0]),
        _indent(own[-1]),
        place.column,
        place.end_column,
        len(_starts(lines, stripped)) == 1,
        tuple(weights.items()),
        words.rare,
    )


def unchanged(known: Written, lines: Sequence[str], place: Spanned) -> Spanned | None:
    """The place, to the character, where it shows the very lines that it was put on; None where it does not."""
    is_there = tuple(line.strip() for line in _own_lines(lines, place)) == known.lines
    return _put(known, lines, place, place.line - 1) if is_there else None


def without_doubles(known: Written, lines: Sequence[str]) -> Written:
    """What is known of a statement that is gone from a text: the same lines elsewhere in it are another statement."""
    return replace(known, is_single=False) if _starts(lines, known.lines) else known


def is_edited(known: Written, lines: Sequence[str], place: HasSpan) -> bool:
    """Whether a place shows the statement that it was put on after an edit of it, and nothing else."""
    now = tuple(line.strip() for line in _own_lines(lines, place))
    if len(now) > len(known.lines) and _statements(now) > _statements(known.lines):
        return False
    left = {word for line in now for word in _WORD.findall(line)}
    total = sum(weight for _, weight in known.words)
    gone = [weight for word, weight in known.words if word not in left]
    # A name that the file has nowhere else is what makes the statement this one, or another one.
    if not (left & known.rare) <= {word for word, _ in known.words}:
        return False
    return total > 0 and max(gone, default=0.0) < 1.0 and sum(gone) <= (1 - _LEAST_KEPT) * total


def found_again(known: Written, lines: Sequence[str], place: Spanned) -> Spanned | None:
    """Where the very lines of a lost place stand; None if they do not, or several such do."""
    starts = _starts(lines, known.lines) if known.is_single else []
    if len(starts) != 1:
        return None
    return _put(known, lines, place, starts[0])


def _put(known: Written, lines: Sequence[str], place: Spanned, first: int) -> Spanned | None:
    """`place` on the known lines, which begin at position `first`."""
    last = first + len(known.lines) - 1
    column = known.column + _indent(lines[first]) - known.indent
    end_column = known.end_column + _indent(lines[last]) - known.last_indent
    if column < 1 or end_column < 1:
        return None
    return replace(place, line=first + 1, column=column, end_line=last + 1, end_column=end_column)  # pyright: ignore[reportArgumentType, reportCallIssue]


def _weight(word: str, frequency: Mapping[str, int]) -> float:
    return (_NUMBER if word[0].isdigit() else 1.0) / max(frequency.get(word, 1), 1)


def _own_lines(lines: Sequence[str], place: HasSpan) -> Sequence[str]:
    """The lines of a place; one that ends before the first character of a line does not include that line."""
    last = place.end_line - 1 if place.end_column == 1 and place.end_line > place.line else place.end_line
    return [line.rstrip("\r\n") for line in lines[place.line - 1 : last]] or [""]


def _starts(lines: Sequence[str], wanted: tuple[str, ...]) -> list[int]:
    """Positions at which these lines stand."""
    found = []
    for start in range(len(lines) - len(wanted) + 1):
        if lines[start].strip() == wanted[0] and all(lines[start + i].strip() == line for i, line in enumerate(wanted)):
            found.append(start)
    return found


def _statements(lines: Sequence[str]) -> int:
    """About how many statements begin on these lines: those outside all brackets."""
    count = depth = 0
    for line in lines:
        count += depth <= 0 and bool(line) and not line.startswith(("#", ".", ")", "]", "}"))
        depth += sum(line.count(c) for c in "([{") - sum(line.count(c) for c in ")]}")
    return count


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
