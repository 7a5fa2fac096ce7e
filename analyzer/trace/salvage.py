"""Reading what can be read of a damaged stretch of events, one event at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from .events import Event, decode_event
from .nesting import deeper_than

JOINS = 8
"""How many pieces are put together again to find an event that itself holds `},{`."""
GUESSES = 4

LIST_END = re.compile(rb"(?:\}|\A|,)\s{0,64}(\])(?=\s{0,64}(?:,\s{0,64}\"|\}|\Z))")
"""A `]` that may end the list of events: after an event, and before a key, the document's `}` or the end."""
_BETWEEN = re.compile(rb"(?<=\})\s{0,64},\s{0,64}(?=\{)")


@dataclass(slots=True)
class Salvage:
    """What was found. Offsets and `length` are bytes from the start of the text, positions count its events."""

    events: list[Event] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    """Offsets of events that could not be read."""
    mended: list[int] = field(default_factory=list)
    """Offsets of events that were no valid JSON but could be repaired."""
    count: int = 0
    length: int = 0
    """How much of the text is done with. An unfinished last event is not."""
    is_end: bool = False
    """Whether the list of events ends at `length`."""


def salvage(text: bytes, *, is_last: bool, max_depth: int) -> Salvage:
    """Read the events of `text`, which begins where one begins; `is_last` says that nothing follows it."""
    found = Salvage()
    pieces = _split(text)
    index = 0
    while index < len(pieces) and not found.is_end:
        start, end = pieces[index]
        may_end_later = index == len(pieces) - 1 and not is_last
        event, used, mended = _first_event(text, pieces[index : index + JOINS], max_depth, mend=not may_end_later)
        if event is None and (ending := _ending(text, start, end, is_last)) is not None:
            found.is_end, found.length = True, ending
            body = text[start:ending].rstrip().removesuffix(b",").strip()
            event = decode_event(body, mend=False)
            mended = event is None
            event = event or decode_event(body)
            if not body:
                break
        elif event is None and index == len(pieces) - 1:
            found.length = start
            break
        if event is None:
            found.lost.append(start)
        else:
            found.events.append(event)
            found.positions.append(found.count)
            if mended:
                found.mended.append(start)
        found.count += 1
        index += used
        if not found.is_end:
            found.length = pieces[index][0] if index < len(pieces) else len(text)
    return found


def _split(text: bytes) -> list[tuple[int, int]]:
    """Start and end of the pieces of `text` between commas that may part two events."""
    pieces = []
    start = len(text) - len(text.lstrip())
    for match in _BETWEEN.finditer(text):
        pieces.append((start, match.start()))
        start = match.end()
    if rest := text[start:].rstrip().removesuffix(b","):
        pieces.append((start, start + len(rest)))
    return pieces


def _first_event(
    text: bytes, pieces: list[tuple[int, int]], max_depth: int, *, mend: bool
) -> tuple[Event | None, int, bool]:
    """The event that begins with the first piece, how many pieces it takes, and whether it had to be mended."""
    start, end = pieces[0]
    piece = text[start:end]
    if deeper_than(piece, max_depth):
        return None, 1, False
    if event := decode_event(piece, mend=False):
        return event, 1, False
    if piece.count(b"{") > piece.count(b"}"):
        for used in range(2, len(pieces) + 1):
            if event := decode_event(text[start : pieces[used - 1][1]], mend=False):
                return event, used, False
    return decode_event(piece, mend=mend), 1, True


def _ending(text: bytes, start: int, end: int, is_last: bool) -> int | None:
    """Position of the `]` that ends the list of events, if it lies between `start` and `end`."""
    for match in islice(LIST_END.finditer(text[start:end]), GUESSES):
        position = start + match.start(1)
        body = text[start:position].rstrip().removesuffix(b",").strip()
        if not body or decode_event(body) or (is_last and _is_tail(text[position + 1 :])):
            return position
    return None


def _is_tail(text: bytes) -> bool:
    """Whether `text` can follow the list of events of a whole document."""
    if not text.strip():
        return True
    try:
        msgspec.json.decode(b'{"traceEvents":[]' + text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
