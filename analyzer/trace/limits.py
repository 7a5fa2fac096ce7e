"""What a reader may spend on one file, and how it says no."""

from __future__ import annotations

from dataclasses import dataclass


class TraceError(Exception):
    """Nothing usable could be read from a trace; the message is for people."""


class TraceCancelled(TraceError):
    """The caller asked to stop."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one file. What lies beyond a bound is left out and reported as a problem of kind `limit`."""

    max_bytes: int = 16 << 30
    """Uncompressed size of the document."""
    max_compression_ratio: int = 400
    """Uncompressed by compressed size. Kineto's traces compress 20 to 60 times."""
    max_events: int = 20_000_000
    """Entries of `traceEvents`; each complete event takes about 110 bytes of memory."""
    max_lost_events: int = 50_000
    """Events too damaged to read, after which reading stops: it takes long, and nobody trusts the rest."""
    max_event_bytes: int = 16 << 20
    """Size of one event, and of everything in the document that is no event."""
    max_name_chars: int = 8192
    """Length of a name; of a longer one the end is cut. Those of templated kernels have some thousand characters."""
    max_depth: int = 64
    """Nesting of what is decoded into values: operator inputs and the document's own fields. Fields that nobody asks
    for may nest until the parser's own bound, about 1,000; an event beyond that counts as damaged."""
