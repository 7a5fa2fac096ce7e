"""The extra measurements of one run, each kept from harming the program or the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...analyzer.trace.recording import Recording
from .extras import Extra, ExtraContext, wanted
from .options import RecordOptions


class Measuring:
    """All extras that were asked for. One that fails is left out from then on, with a note."""

    def __init__(self, options: RecordOptions) -> None:
        """Make them; torch has been imported."""
        self.notes: list[str] = []
        self._extras: list[Extra | None] = []
        self._is_started: set[int] = set()
        for make in wanted(options):
            try:
                self._extras.append(make())
            except Exception as error:  # noqa: BLE001  an extra may need what this machine lacks
                self.notes.append(f"an extra measurement could not begin: {type(error).__name__}: {error}")

    @property
    def steps(self) -> list[int]:
        """How many own steps each wants."""
        return [extra.own_steps if extra is not None else 0 for extra in self._extras]

    def start(self, index: int, context: ExtraContext) -> None:
        """Before the own steps of one."""
        self._is_started.add(index)
        self._try(index, lambda extra: extra.start(context))

    def stop(self, index: int) -> None:
        """After them."""
        if index in self._is_started:
            self._is_started.discard(index)
            self._try(index, lambda extra: extra.stop())

    def begin_full(self, context: ExtraContext) -> None:
        """Before the full steps: those without own steps begin."""
        for index, steps in enumerate(self.steps):
            if steps == 0:
                self.start(index, context)

    def on_full_step(self, step: int) -> None:
        """At the end of a full step, inside it."""
        for index in range(len(self._extras)):
            self._try(index, lambda extra: extra.on_full_step(step))

    def end(self) -> None:
        """Nothing is measured any more."""
        for index in sorted(self._is_started):
            self.stop(index)

    def finish(self, recording: Recording, trace: Path) -> Recording:
        """What they found, in the recording."""
        for index in range(len(self._extras)):

            def add(extra: Extra) -> None:
                nonlocal recording
                recording = extra.finish(recording, trace)

            self._try(index, add)
        return recording

    def _try(self, index: int, call: Callable[[Extra], None]) -> None:
        extra = self._extras[index]
        if extra is None:
            return
        try:
            call(extra)
        except Exception as error:  # noqa: BLE001  it runs inside the program, which must go on
            self._extras[index] = None
            self.notes.append(f"{extra.title} was given up: {type(error).__name__}: {error}")
