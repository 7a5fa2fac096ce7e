"""From blocks of bytes to batches of events, whatever the layout of the document.

A batch ends where one event ends and the next begins. Finding that place takes a guess, `}`, a comma and `{` with only
white space between, and a proof: the batch decodes as a list of objects from a known start, so the guess was right.
Only text that refuses to decode is taken apart event by event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from .counters import Measured, ranges_in
from .events import Event, decode_events
from .limits import Limits, TraceError
from .problems import ProblemLog
from .salvage import LIST_END, salvage

BATCH_BYTES = 128 << 10
"""Some hundred events: few enough for their objects to stay in the processor's cache."""
GUESSES = 4
"""How many candidates for one place are tried on a whole batch before it is taken apart."""
WHITE_BYTES = 64
"""More white space than this between two events is nobody's layout."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_EVENTS_KEY = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
_COMMA_BEFORE = re.compile(rb"\}\s*(,)\s*\Z")


@dataclass(frozen=True, slots=True)
class Batch:
    """Some events in file order, with the position of each in `traceEvents`."""

    events: list[Event]
    positions: Sequence[int]
    offset: int
    """Byte offset of the batch in the document."""
    ranges: Sequence[Measured] = ()
    """Hardware counters among the events."""


class Document:
    """One document being read. After `batches()` has ended, `skeleton` is the document without its events."""

    def __init__(self, blocks: Iterable[bytes], limits: Limits, problems: ProblemLog) -> None:
        self._blocks = iter(blocks)
        self._limits = limits
        self._problems = problems
        self._exhausted = False
        self._text = b""
        self._offset = 0  # of _text in the document
        self._count = 0  # events met so far, lost ones too
        self._lost = 0
        self._head = b""
        self._tail: bytes | None = None  # what follows the `]` of the events; None until it is found

    @property
    def skeleton(self) -> bytes:
        """The document with an empty `traceEvents`, closed if its end is missing."""
        if self._tail is not None:
            return self._head + b"]" + self._tail
        return self._head + (b"]}" if self._head.startswith(b"{") else b"]")

    @property
    def bytes_read(self) -> int:
        """How much of the document was seen."""
        return self._offset + len(self._text)

    def batches(self) -> Iterator[Batch]:
        """Yield the events. Raises `TraceError` if the document has no list of events."""
        self._find_events()
        while self._tail is None:
            # Twice as much each time that no event ended, so that a huge one is not looked at over and over.
            self._fill(len(self._text) + max(len(self._text), BATCH_BYTES))
            batch = self._next_batch()
            if batch.events:
                yield batch
            if self._tail is None and (message := self._exceeded()):
                self._problems.add("limit", message, offset=self._offset)
                return
            if self._tail is None and self._exhausted and not batch.events:
                self._problems.add("truncated", "the document ends inside its list of events", offset=self._offset)
                return
        self._read_tail()

    def _exceeded(self) -> str:
        """What limit on events is exceeded, in words; "" if none."""
        if self._count >= self._limits.max_events:
            return f"more than {self._limits.max_events:,} events; the rest was not read"
        if self._lost >= self._limits.max_lost_events:
            return f"more than {self._limits.max_lost_events:,} damaged events; the rest was not read"
        return ""

    def _fill(self, size: int) -> None:
        """Read until `_text` has `size` bytes or there are no more."""
        parts = [self._text]
        missing = size - len(self._text)
        while missing > 0 and not self._exhausted:
            block = next(self._blocks, None)
            if block is None:
                self._exhausted = True
            else:
                parts.append(block)
                missing -= len(block)
        self._text = b"".join(parts)

    def _consume(self, length: int) -> bytes:
        taken, self._text = self._text[:length], self._text[length:]
        self._offset += length
        return taken

    def _find_events(self) -> None:
        """Put everything up to and including the `[` of the events into `_head`."""
        while not self._exhausted and len(self._text) < WHITE_BYTES:
            self._fill(len(self._text) + 1)
        start = self._text.removeprefix(BYTE_ORDER_MARK).lstrip()
        self._consume(len(self._text) - len(start))
        if start.startswith(b"["):
            self._head = self._consume(1)
            return
        if not start.startswith(b"{"):
            raise TraceError("not a profiler trace: neither a JSON object nor a list" if start else "the file is empty")
        while not (found := _EVENTS_KEY.search(self._text)):
            if self._exhausted or len(self._text) > self._limits.max_event_bytes:
                raise TraceError("not a profiler trace, or cut off at its beginning: there is no list of traceEvents")
            self._fill(len(self._text) + BATCH_BYTES)
        self._head = self._consume(found.end())

    def _next_batch(self) -> Batch:
        """Take events off `_text`: as many as decode together, else what can be had one by one."""
        cuts = _last_boundaries(self._text)
        if cuts and (batch := self._take(cuts[0])):
            return batch
        for end in _list_ends(self._text):
            if batch := self._take(end):
                self._end_list()
                return batch
        for cut in cuts[1:]:
            if batch := self._take(cut):
                return batch
        return self._take_apart()

    def _take(self, length: int) -> Batch | None:
        """The events in the first `length` bytes and the separator after them; None if those are not plain events."""
        text = self._text[:length].rstrip().removesuffix(b",")
        events = decode_events(text)
        if events is None:
            return None
        positions = range(self._count, self._count + len(events))
        batch = Batch(events, positions, self._offset, ranges_in(text, self._count))
        self._count += len(events)
        self._consume(length)
        if self._text.startswith(b","):
            self._consume(1)
        return batch

    def _take_apart(self) -> Batch:
        """What can be had of `_text` event by event; an unfinished last one stays there."""
        found = salvage(self._text, is_last=self._exhausted, max_depth=self._limits.max_depth)
        self._lost += len(found.lost)
        if found.lost:
            message = "an event is damaged beyond repair or nested too deep"
            self._problems.add("event", message, offset=self._offset + found.lost[0], count=len(found.lost))
        if found.mended:
            message = "an event is no valid JSON and was read after repair"
            self._problems.add("mended", message, offset=self._offset + found.mended[0], count=len(found.mended))
        # Counters are read of events that are odd, not of those that are damaged: nothing tells where those begin.
        ranges = ranges_in(self._text[: found.length].strip(b", \t\r\n"), self._count)
        batch = Batch(found.events, [self._count + position for position in found.positions], self._offset, ranges)
        self._count += found.count
        self._consume(found.length)
        if found.is_end:
            self._end_list()
        elif len(self._text) > self._limits.max_event_bytes:
            message = f"no event ends within {self._limits.max_event_bytes:,} bytes"
            self._problems.add("limit", message, offset=self._offset)
            self._consume(len(self._text))
            self._count += 1
        return batch

    def _end_list(self) -> None:
        """Pass the `]` that `_text` begins with."""
        self._consume(1)
        self._tail = b""

    def _read_tail(self) -> None:
        self._fill(self._limits.max_event_bytes)
        self._tail = self._text
        while not self._exhausted:
            self._consume(len(self._text))
            self._fill(BATCH_BYTES)


def _last_boundaries(text: bytes) -> list[int]:
    """Where events may end near the end of `text`, last first: positions of commas between `}` and `{`."""
    found: list[int] = []
    brace = text.rfind(b"{")
    while brace >= 0 and len(found) < GUESSES:
        start = max(0, brace - WHITE_BYTES)
        if match := _COMMA_BEFORE.search(text[start:brace]):
            found.append(start + match.start(1))
        brace = text.rfind(b"{", 0, brace)
    return found


def _list_ends(text: bytes) -> list[int]:
    """Positions in `text` of the first few `]` that may end the list of events."""
    return [match.start(1) for match in islice(LIST_END.finditer(text), GUESSES)]
