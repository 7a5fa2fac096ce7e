"""Source texts that were seen with a trace, so that its places are found again after edits that no repository knows of.

In the user's cache, by content: a text that many traces ran is kept once. The folder may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from .git import blob_hash

_MOST_FILES = 4_000
_MOST_TEXT_BYTES = 4_000_000


class SourceStore:
    """Texts by hash, and which of them each trace ran."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def text(self, blob: str) -> str | None:
        """The text of a hash; None if it is not kept, or not that text any more."""
        if not blob.isalnum():
            return None
        try:
            packed = zlib.decompressobj()
            text = packed.decompress((self._folder / f"{blob}.z").read_bytes(), _MOST_TEXT_BYTES).decode("utf-8")
        except (OSError, zlib.error, UnicodeDecodeError):
            return None
        return text if blob_hash(text) == blob else None

    def sources_of(self, trace: Path, root: Path) -> Mapping[str, str]:
        """The files of a folder that a trace ran when it was first placed, with their hashes; nothing for a trace that
        was never seen, or written again since."""
        try:
            return msgspec.json.decode(self._file_of(trace, root).read_bytes(), type=dict[str, str])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}

    def keep(self, trace: Path, root: Path, texts: Mapping[str, str]) -> None:
        """Keep the texts of a folder that a trace ran. Where nothing can be written, nothing is kept."""
        small = {path: text for path, text in texts.items() if len(text) <= _MOST_TEXT_BYTES // 4}
        with contextlib.suppress(OSError, UnicodeEncodeError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            sources = {path: blob_hash(text) for path, text in small.items()}
            for path, blob in sources.items():
                file = self._folder / f"{blob}.z"
                if not file.exists():
                    _write(file, zlib.compress(small[path].encode("utf-8")))
            _write(self._file_of(trace, root), msgspec.json.encode(sources))
            self._prune()

    def _file_of(self, trace: Path, root: Path) -> Path:
        try:
            info = trace.stat()
            stamp = f"{info.st_size}\0{info.st_mtime_ns}"
        except OSError:
            stamp = ""
        subject = f"{root}\0{os.path.abspath(trace)}\0{stamp}"  # noqa: PTH100
        name = hashlib.blake2b(subject.encode("utf-8", "surrogateescape"), digest_size=16)
        return self._folder / f"{name.hexdigest()}.trace"

    def _prune(self) -> None:
        """Drop what was written longest ago."""
        files = list(self._folder.iterdir())
        if len(files) > _MOST_FILES:
            for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)[: len(files) // 4]:
                file.unlink(missing_ok=True)


def _write(file: Path, data: bytes) -> None:
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(file)
