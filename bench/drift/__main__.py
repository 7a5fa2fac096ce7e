"""How places survive edits: `python -m bench.drift`.

Random programs are edited at random. `source`: a trace is older than the file, and each of its statements is looked for
in the text of today. `rewritten`: a file with findings becomes another text in one go. `typed`: a client edits a
document with findings and undoes everything. Of the statements that are still there: how many are found, the others
being given up; a place on another statement is a mistake.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence

from ..results import Figure, Target, publish
from .programs import edited, random_program, render
from .sessions import MARK, Session, edit, program
from .states import PATH, shown, state_of
from .trial import Counts, drift, same

EDITS = (1, 3, 8, 20)
DRIFTS = 700
REWRITTEN = 700
SESSIONS = 500
SESSION_EDITS = 12
FIRST_OTHER = 1_000_000
TARGETS = {"wrong": Target(at_most=0), "undo_failed": Target(at_most=0), "found_pct": Target(at_least=80)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, publish, and answer 0 if every target is met."""
    parser = argparse.ArgumentParser(prog="python -m bench.drift", description=__doc__)
    parser.add_argument("--drifts", type=int, default=0, metavar="N", help="only count the mistakes of N other drifts")
    other = parser.parse_args(arguments).drifts
    if other:
        return _mistakes(other)
    figures = [*_source(), *_rewritten(), *_typed()]
    return 0 if publish("drift", figures, targets=TARGETS) else 1


def _mistakes(drifts: int) -> int:
    """Print the mistakes of drifts that the published figures do not rest on, up to twelve edits each; 1 if any."""
    found = 0
    for seed in range(FIRST_OTHER, FIRST_OTHER + drifts):
        wrong = drift(random.Random(seed), seed % 13).wrong
        found += bool(wrong)
        for mistake in wrong:
            print(f"{seed}: {mistake}")
    print(f"{found} of {drifts} drifts with a place on another statement")
    return 1 if found else 0


def _source() -> Iterator[Figure]:
    for edits in EDITS:
        started_s = time.perf_counter()
        counts = sum((drift(random.Random(1000 * seed + edits), edits) for seed in range(DRIFTS)), Counts())
        took_ms = 1000 * (time.perf_counter() - started_s) / DRIFTS
        subject = f"source, {edits} edit{'s' * (edits > 1)}"
        yield from _figures(subject, counts.right, counts.lost, counts.wrong)
        yield Figure(subject, "ms_each", took_ms)


def _rewritten() -> Iterator[Figure]:
    right = lost = 0
    wrong: list[str] = []
    for seed in range(REWRITTEN):
        chance = random.Random(seed)
        made = random_program(chance)
        before, after = render(made, chance), render(edited(made, chance, chance.choice(EDITS)), chance)
        state = state_of(before)
        first = shown(state)
        state.sync(PATH, after.text)
        at_line = {line: number for number, line in after.line_of.items()}
        now = shown(state)
        for name in first:
            is_right = name in now and at_line.get(now[name][0]) in same(int(name), before, after)
            right += is_right
            lost += name not in now and int(name) in after.line_of
            wrong += [f"{seed}: {name}"] if name in now and not is_right else []
    yield from _figures("rewritten", right, lost, tuple(wrong))


def _typed() -> Iterator[Figure]:
    right = lost = failed = edits = 0
    wrong: list[str] = []
    for seed in range(SESSIONS):
        chance = random.Random(seed)
        session = Session(program(chance, chance.choice(("\n", "\r\n"))), chance.choice(("utf-8", "utf-16", "utf-32")))
        first = session.shown()
        for _ in range(SESSION_EDITS):
            edit(session, chance)
            now, mistakes = session.shown(), session.mistakes()
            wrong += mistakes
            right += len(now) - len(mistakes)
            lost += len(set(MARK.findall(session.document.source)) - set(now))
        edits += len(session.undone)
        while session.undone:
            session.undo()
            wrong += session.mistakes()
        failed += session.shown() != first
    yield Figure("typed", "edits", edits)
    yield from _figures("typed", right, lost, tuple(wrong))
    yield Figure("typed", "undo_failed", failed)


def _figures(subject: str, right: int, lost: int, wrong: tuple[str, ...]) -> Iterator[Figure]:
    for one in wrong[:5]:
        print(f"{subject}: {one}")
    yield Figure(subject, "statements", right + lost + len(wrong))
    yield Figure(subject, "found_pct", 100 * right / max(right + lost + len(wrong), 1))
    yield Figure(subject, "wrong", len(wrong))


if __name__ == "__main__":
    sys.exit(main())
