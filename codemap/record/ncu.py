"""`--ncu FILE`: counters of a run under Nsight Compute, put beside the trace."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ...analyzer.trace.counters import CounterTable, for_recording
from ...analyzer.trace.ncu import read_ncu
from ...analyzer.trace.recording import Recording
from .extras import ExtraContext
from .options import RecordOptions


class NcuExtra:
    """The file, read at once so that a wrong one is told of early."""

    title = "--ncu"
    own_steps = 0

    def __init__(self, options: RecordOptions) -> None:
        """Read the file. Raises `TraceError` if it cannot be used."""
        self._table: CounterTable = read_ncu(Path(options.ncu))

    def start(self, context: ExtraContext) -> None:
        """Nothing is to be measured."""

    def stop(self) -> None:
        """Nothing was started."""

    def on_full_step(self, index: int) -> None:
        """Nothing is written into the trace."""

    def finish(self, recording: Recording, trace: Path) -> Recording:
        """Add the counters."""
        return msgspec.structs.replace(recording, launches=for_recording(self._table))
