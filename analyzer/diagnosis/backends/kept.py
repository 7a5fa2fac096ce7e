"""Folders that are costly to make, kept on disk: made once, whole or not at all, and made again where damaged."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

_MANIFEST = "manifest.json"
_BLOCK_BYTES = 1 << 20


def kept_folder(folder: Path, make: Callable[[Path], None]) -> Path:
    """`folder`, filled by `make` (which is given an empty one) unless it is there and whole.

    Processes that want it at the same time wait for the one that makes it. Raises OSError where it cannot be written.
    """
    from filelock import FileLock

    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not is_whole(folder):
            unfinished = folder.with_name(f"{folder.name}.part")
            for old in (unfinished, folder):
                shutil.rmtree(old, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            digests = {path.name: file_digest(path) for path in sorted(unfinished.iterdir())}
            (unfinished / _MANIFEST).write_text(json.dumps(digests, indent=1), "utf-8")
            unfinished.rename(folder)
    return folder


def is_whole(folder: Path) -> bool:
    """Whether every file is as it was written."""
    try:
        digests = json.loads((folder / _MANIFEST).read_text("utf-8"))
        return bool(digests) and all(file_digest(folder / name) == digest for name, digest in digests.items())
    except (OSError, ValueError, AttributeError):
        return False


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
