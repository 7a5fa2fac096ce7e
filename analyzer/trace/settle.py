"""Whether a trace file has been written to its end, told without reading it as a trace."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from .limits import Limits
from .stream import is_bomb

GZIP_MAGIC = b"\x1f\x8b"
BLOCK_BYTES = 1 << 20
TAIL_BYTES = 256
WHITE_SPACE = b" \t\r\n\0"


def is_complete(path: Path) -> bool:
    """Whether the file ends as a trace does: a gzip stream with its trailer, or a JSON text with a closing bracket.

    A plain file that is being written may end with a bracket by chance, so ask only once it has stopped growing. False
    for an empty file, and for one that can't be read.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(len(GZIP_MAGIC))
            stream.seek(0)
            return _ends_gzip(stream) if head == GZIP_MAGIC else _ends_json(stream)
    except OSError:
        return False


def _ends_json(stream: BinaryIO) -> bool:
    size = stream.seek(0, 2)
    stream.seek(max(size - TAIL_BYTES, 0))
    return stream.read().rstrip(WHITE_SPACE).endswith((b"}", b"]"))


def _ends_gzip(stream: BinaryIO) -> bool:
    """Decompress (far faster than parsing) and see whether the last member's checksum was there, and right."""
    member = isal_zlib.decompressobj(16 + zlib.MAX_WBITS)
    block = stream.read(BLOCK_BYTES)
    total = 0
    while block:
        try:
            total += len(member.decompress(block, BLOCK_BYTES))
        except isal_zlib.error:  # pyright: ignore[reportGeneralTypeIssues]
            # Damaged, not short: waiting mends nothing, and the reader says what is wrong with it.
            return True
        if member.eof and (rest := member.unused_data.lstrip(b"\0")):
            member, block = isal_zlib.decompressobj(16 + zlib.MAX_WBITS), rest
        else:
            block = member.unconsumed_tail or stream.read(BLOCK_BYTES)
        if is_bomb(total, stream, Limits()):
            return True
    return member.eof
