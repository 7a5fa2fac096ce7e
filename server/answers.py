"""A language model's answers of earlier runs, kept in the user's cache, which may be deleted at any time.

Kept is what the model said, not what was made of it: whatever stands in a file passes the same checks as an answer
that was just given.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

import msgspec
import platformdirs

from ..analyzer.diagnosis.diagnose import Asked
from ..codemap.disk import inside, read_regular, write_whole

MOST_FILES = 1000
MOST_BYTES = 64_000
_SUFFIX = ".json"

log = logging.getLogger(__name__)


class KeptAnswers:
    """One file per fingerprint in one folder; when there are too many, those used longest ago go."""

    def __init__(self, folder: Path | None = None, most_files: int = MOST_FILES) -> None:
        self._folder = folder or platformdirs.user_cache_path("torchtraceap") / "answers"
        self._most_files = most_files

    def load(self, fingerprint: str) -> Asked | None:
        """What was kept; None if nothing was, or it cannot be read."""
        file = self._file(fingerprint)
        data = read_regular(file, MOST_BYTES) if file is not None else None
        if file is None or data is None:
            return None
        try:
            asked = msgspec.json.decode(data, type=Asked)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        with contextlib.suppress(OSError):
            os.utime(file)
        return asked if asked.answers and asked.invalid >= 0 else None

    def store(self, fingerprint: str, asked: Asked) -> None:
        """Keep it, whole or not at all."""
        data = msgspec.json.encode(asked)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._file(fingerprint)
            if file is None or len(data) > MOST_BYTES:
                return
            write_whole(file, data)
            self._forget_oldest()
        except OSError as error:
            log.warning("a model's answer cannot be kept: %s", error)

    def _file(self, fingerprint: str) -> Path | None:
        """Its file; None where a link leads out of the folder."""
        name = f"{fingerprint}{_SUFFIX}"
        if not fingerprint.isalnum() or inside(self._folder.resolve(), name) is None:
            return None
        return self._folder / name

    def _forget_oldest(self) -> None:
        files = sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda file: file.lstat().st_mtime_ns, reverse=True)
        for file in files[self._most_files :]:
            file.unlink(missing_ok=True)
