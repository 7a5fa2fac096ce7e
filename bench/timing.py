"""How much processor time something takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def cpu_s(run: Callable[[], T]) -> tuple[float, T]:
    """The processor time of this process that a call takes, all threads together, and what it gives."""
    start_s = time.process_time()
    result = run()
    return time.process_time() - start_s, result
