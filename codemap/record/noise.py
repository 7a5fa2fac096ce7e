"""The profiler's own lines on stderr, which are no output of the program that is recorded."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_KINETO = rb"USDT:|\w+:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+:\d+ \w+\.cpp:\d+\] "
_ALLOCATOR = rb"(?:\[rank\d+\]:)?\[W.*\bCPUAllocator\.cpp:\d+\] "
_NOISE = re.compile(rb"^(?:%b|%b).*\n?" % (_KINETO, _ALLOCATOR), re.MULTILINE)
_STDERR = 2


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what the profiler's library writes to stderr from it; anything else is written a moment later."""
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        kept = os.dup(_STDERR)
    except OSError:  # closed: there is nothing to keep quiet
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), _STDERR)
        try:
            yield
        finally:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(kept, _STDERR)
            os.close(kept)
            held.seek(0)
            if rest := _NOISE.sub(b"", held.read()):
                os.write(_STDERR, rest)
