"""What a recording can measure besides the profile: a part of its own for each (`--attention`, `--counters`, `--ncu`).

The order of a run: warm-up, then the own steps of each extra (no profiler runs), then the full steps, then the light
ones. An extra runs inside the recorded program: whatever it raises ends the extra, never the program, and is noted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ...analyzer.trace.recording import Recording
from .options import RecordOptions


@dataclass(frozen=True, slots=True)
class ExtraContext:
    """What an extra is given when it starts."""

    roots: Mapping[str, Any]
    """The outermost modules called so far (`torch.nn.Module`), by name. Wrappers such as DDP are taken off."""
    paths: Mapping[int, str]
    """`id(module)` -> its path as in `RecordedModule.path` and in the trace's tags, for each module of the roots."""


class Extra(Protocol):
    """One part."""

    title: str
    """As the user asked for it: "--attention"."""
    own_steps: int
    """How many whole steps of the program it wants to itself, with no other profiler running; 0 for none."""

    def start(self, context: ExtraContext) -> None:
        """Between two steps, before its own steps: hook what is to be watched, start a profiler of its own."""
        ...

    def stop(self) -> None:
        """After its own steps, or when the program ends within them: take away what slows. Called once."""
        ...

    def on_full_step(self, index: int) -> None:
        """At the end of full step `index` (from 0), inside it: ranges opened here are in the trace."""
        ...

    def finish(self, recording: Recording, trace: Path) -> Recording:
        """What it has measured, added to what is written beside the trace, whose file is complete.

        Called for each time that this is written: when the full steps are over, and at the end.
        """
        ...


_MADE_BY = (
    ("attention", "attention", "AttentionExtra"),
    ("counters", "nvml", "NvmlExtra"),
    ("counters", "counters", "CountersExtra"),
    ("ncu", "ncu", "NcuExtra"),
)
"""Option that asks for it, module of this package, and the class in it, called with the options."""


def wanted(options: RecordOptions) -> Iterator[Callable[[], Extra]]:
    """A maker for each extra that was asked for. Making one may raise what its module raises."""
    for option, module, name in _MADE_BY:
        if getattr(options, option):
            yield lambda module=module, name=name: getattr(importlib.import_module(f".{module}", __package__), name)(
                options
            )
