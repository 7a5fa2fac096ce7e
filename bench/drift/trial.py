"""One random drift: where each statement of the program before is found in the program after."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from torchtraceap.codemap.drift_match import Matching
from torchtraceap.codemap.drift_units import units_of
from torchtraceap.codemap.source import parse_source

from .programs import Rendered, edited, random_program, render


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of statements that are still there (`right`, `lost`), of those that are gone, and the mistakes."""

    right: int = 0
    lost: int = 0
    gone: int = 0
    wrong: tuple[str, ...] = ()

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.right + other.right, self.lost + other.lost, self.gone + other.gone, self.wrong + other.wrong
        )


def drift(chance: random.Random, edits: int) -> Counts:
    """Edit a random program `edits` times and look for each of its statements."""
    program = random_program(chance)
    after = edited(program, chance, edits)
    return compare(render(program, chance), render(after, chance))


def compare(before: Rendered, after: Rendered) -> Counts:
    """Look for every statement of `before` in `after`.

    A statement that was deleted and written anew (but for what it assigns to) counts as the same. So do equal
    statements that follow on each other, and one that was written a second time into its function, or into the one
    that it was taken out of: which of the two is the first one, nobody could tell. A function is where most of its
    statements are.
    """
    old, new = units_of(parse_source("a.py", before.text)), units_of(parse_source("a.py", after.text))
    matching = Matching(old, new)
    at_line = {line: number for number, line in after.line_of.items()}
    right = lost = gone = 0
    wrong: list[str] = []
    for number, line in before.line_of.items():
        unit = old.at(line)
        match = matching.of(unit) if unit is not None else None
        if match is None:
            lost, gone = (lost + 1, gone) if number in after.line_of else (lost, gone + 1)
            continue
        found = at_line[match.unit.node.lineno]
        if found in same(number, before, after):
            right += 1
        else:
            wrong.append(f"{before.text_of[number]} (line {line}) -> {after.text_of[found]} ({match.unit.node.lineno})")
    return Counts(right, lost, gone, tuple(wrong))


def same(number: int, before: Rendered, after: Rendered) -> set[int]:
    """The statements of `after` that are number `number` of `before`."""
    text = before.text_of[number]
    if text.startswith(("def ", "class ")):
        held = [child for child in before.held_by[number] if child in after.line_of]
        holders = Counter(after.holder_of[child][text.startswith("class ")] for child in held)
        return {number, *(holder for holder, count in holders.items() if 2 * count >= len(held))}
    same = {number, *_run(number, before.text_of), *_run(number, after.text_of)}
    new = {one: other for one, other in after.text_of.items() if one not in before.text_of}
    if number not in after.line_of:
        value = text.rpartition(" = ")[2]
        same |= {one for one, other in new.items() if other.endswith(value)}
    else:
        homes = (after.holder_of.get(number), before.holder_of.get(number))
        same |= {one for one, other in new.items() if other == text and after.holder_of.get(one) in homes}
    return same | {other for one in same for other in _run(one, after.text_of)}


def _run(number: int, text_of: dict[int, str]) -> set[int]:
    """The statements of the same text right above and below a statement."""
    order = list(text_of)
    found: set[int] = set()
    for step in (-1, 1):
        other = order.index(number) + step if number in text_of else -1
        while 0 <= other < len(order) and text_of[order[other]] == text_of[number]:
            found.add(order[other])
            other += step
    return found
