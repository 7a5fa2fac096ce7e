"""The facts of a workspace's files, kept in the user's cache for the next start.

Whatever the file holds was written by somebody: it is decoded as plain data of known types, and one that is damaged,
too large or of another version counts as none. It is replaced as a whole, so that several daemons may share it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import msgspec
import platformdirs

from .disk import read_regular, write_whole
from .facts import FileFacts

VERSION = 1
"""Raised when facts are found differently, or stored so."""
MOST_BYTES = 128 << 20
MOST_FILES = 32
"""Workspaces remembered; the one stored longest ago goes first."""
_MARK = f"torchtraceap index {VERSION} {sys.byteorder} ".encode()
_DIGEST_BYTES = 16


class Entry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What is known of one file, and which content it is known of."""

    size: int
    mtime_ns: int
    read_ns: int
    """When it was read: a file changed in the same moment may have changed again since."""
    digest: bytes
    """Of its content."""
    facts: FileFacts


_decoder = msgspec.msgpack.Decoder(dict[str, Entry])
_encoder = msgspec.msgpack.Encoder()


def cache_path(root: Path) -> Path:
    """Where the index of the workspace at `root` is kept."""
    name = hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()
    return platformdirs.user_cache_path("torchtraceap") / "index" / f"{name}.msgpack"


def load(path: Path) -> dict[str, Entry]:
    """What was stored, by path relative to the root; nothing if that cannot be used."""
    data = read_regular(path, MOST_BYTES) or b""
    head = len(_MARK) + _DIGEST_BYTES
    if not data.startswith(_MARK) or data[len(_MARK) : head] != _digest(memoryview(data)[head:]):
        return {}
    try:
        entries = _decoder.decode(memoryview(data)[head:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return {path: entry for path, entry in entries.items() if entry.facts.is_sound}


def store(path: Path, entries: dict[str, Entry]) -> bool:
    """Store the entries, at once as a whole; False where that is not possible, or they are too many."""
    body = _encoder.encode(entries)
    if len(body) > MOST_BYTES:
        return False
    try:
        write_whole(path, _MARK + _digest(body) + body)
    except OSError:
        return False
    _forget_old(path.parent)
    return True


def digest_of(data: bytes) -> bytes:
    """What tells one content from another."""
    return hashlib.blake2b(data, digest_size=8).digest()


def _digest(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


def _forget_old(folder: Path) -> None:
    """Delete the files of workspaces that were not stored for long, and what a killed process left half written."""
    try:
        kept = sorted(folder.glob("*.msgpack*"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in kept[MOST_FILES:]:
            file.unlink(missing_ok=True)
    except OSError:  # another process is at it
        return
