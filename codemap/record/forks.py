"""Children that a program forks while, or after, a profiler ran: they end as they would have without one.

Kineto keeps a thread from its first use on and joins it as the process exits. A forked child has no such thread: at
its normal exit it would wait for ever, or be aborted. The same happens to a program that uses torch.profiler itself.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any


@functools.cache
def care_for_children() -> None:
    """Let every child that is forked from now on end well. Once is enough, for as long as the process lives."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=skip_native_exit)


def skip_native_exit() -> None:
    """In a forked child: at its exit leave out what native libraries put up before the fork, such as Kineto's join.

    Python's own end, with `atexit` and what is still to be printed, comes before that and stays. Where the C library
    cannot do it (only glibc has `on_exit`) nothing is done.
    """
    library = ctypes.CDLL(None)
    if not all(hasattr(library, name) for name in ("on_exit", "_exit", "fflush", "__cxa_atexit")):
        return
    # Run in the opposite order: what C has still to print, then the end with the exit code that on_exit hands over.
    library.on_exit(ctypes.cast(library._exit, ctypes.c_void_p), None)
    flush = ctypes.cast(library.fflush, ctypes.c_void_p)
    library.__cxa_atexit(flush, None, None)


def stop_watching() -> None:
    """In a child forked within a profiler's window: nothing of what it does is recorded."""
    import torch

    autograd: Any = torch._C.__dict__.get("_autograd")
    sys.setprofile(None)  # the profiler's own, which makes the stacks
    enable = getattr(autograd, "_enable_record_function", None)
    if enable is not None:
        enable(False)
