"""What outlives the server: which faults were repaired, so that old traces do not bring them back after a restart.

Kept in the user's cache, which may be deleted at any time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from .marks import Repaired

MOST = 500

log = logging.getLogger(__name__)


class Memory:
    """The repaired faults of one folder, in one file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: tuple[Repaired, ...] = ()

    def load(self) -> tuple[Repaired, ...]:
        """What was stored, without lines: the text may have changed since. Nothing if it cannot be read."""
        try:
            stored = msgspec.json.decode(self._file.read_bytes(), type=tuple[Repaired, ...])
        except (OSError, msgspec.MsgspecError):
            return ()
        self._known = tuple(replace(one, line=0, column=0, end_line=0, end_column=0) for one in stored)
        return self._known

    def store(self, repaired: Sequence[Repaired]) -> None:
        """Store the newest of these, if they are not what was stored last."""
        if self._known == tuple(repaired):
            return
        self._known = tuple(repaired)
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_bytes(msgspec.json.encode(self._known[-MOST:]))
        except OSError as error:
            log.warning("what was repaired cannot be kept: %s", error)
