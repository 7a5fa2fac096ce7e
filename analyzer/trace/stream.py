"""Bytes of a trace file, decompressed block by block."""

from __future__ import annotations

import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from isal import isal_zlib

from .limits import Limits, TraceError

if TYPE_CHECKING:  # the language server looks at files without numpy, which problems come with
    from .problems import ProblemLog

GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = 31
"""zlib's way to say: a gzip header and trailer, the largest window."""
READ_BYTES = 64 << 10
BLOCK_BYTES = 128 << 10
RATIO_COUNTS_FROM = 64 << 20
"""Small documents may compress as well as they like."""

Progress = Callable[[float], None]


def read_blocks(path: Path, limits: Limits, problems: ProblemLog, on_progress: Progress) -> Iterator[bytes]:
    """Yield the uncompressed document in blocks of at most `BLOCK_BYTES`.

    The content decides whether it is compressed, not the file's name. `on_progress` gets the share of the file read.
    A damaged gzip stream ends early and a document beyond `limits` is cut; both are reported in `problems`.
    Raises `OSError` if the file cannot be read, and `TraceError` if it is a pipe or a device, which may never end.
    """
    info = path.stat()
    if not stat.S_ISREG(info.st_mode):
        raise TraceError("not a regular file")
    size = max(info.st_size, 1)
    total = 0
    with path.open("rb") as file:
        compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        file.seek(0)
        for block in _inflate(file, path, problems) if compressed else iter(lambda: file.read(BLOCK_BYTES), b""):
            total += len(block)
            if total > limits.max_bytes:
                message = f"the document is larger than {limits.max_bytes:,} bytes; the rest was not read"
                problems.add("limit", message, offset=limits.max_bytes)
                return
            if compressed and is_bomb(total, file, limits):
                message = f"compressed more than {limits.max_compression_ratio} times; the rest was not read"
                problems.add("limit", message, offset=total)
                return
            yield block
            on_progress(min(file.tell() / size, 1.0))


def is_bomb(total: int, file: BinaryIO, limits: Limits) -> bool:
    """Whether `total` uncompressed bytes are too many for what has been read of `file`."""
    return total > max(RATIO_COUNTS_FROM, limits.max_compression_ratio * file.tell())


def _inflate(file: BinaryIO, path: Path, problems: ProblemLog) -> Iterator[bytes]:
    total = 0
    try:
        for block in _inflate_members(file, problems):
            total += len(block)
            yield block
    except isal_zlib.error:  # pyright: ignore[reportGeneralTypeIssues]
        # The failing call kept what it had decoded: the standard library gives that too, fed byte by byte.
        for block in _inflate_until_damage(path, total):
            total += len(block)
            yield block
        problems.add("gzip-damaged", "the gzip stream is damaged or its checksum is wrong", offset=total)


def _inflate_members(file: BinaryIO, problems: ProblemLog) -> Iterator[bytes]:
    decompressor = isal_zlib.decompressobj(wbits=GZIP_WINDOW)
    total = 0
    data = file.read(READ_BYTES)
    while data:
        if decompressor.eof:
            if not data.startswith(GZIP_MAGIC):
                if data.strip(b"\0"):
                    problems.add("trailing-bytes", "bytes that are no gzip follow the document", offset=total)
                return
            decompressor = isal_zlib.decompressobj(wbits=GZIP_WINDOW)
        block = decompressor.decompress(data, BLOCK_BYTES)
        total += len(block)
        if block:
            yield block
        data = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
        if len(data) < len(GZIP_MAGIC):
            data += file.read(READ_BYTES)
    if not decompressor.eof:
        problems.add("gzip-truncated", "the gzip stream ends before its trailer", offset=total)


def _inflate_until_damage(path: Path, skip: int) -> Iterator[bytes]:
    """Yield what the first bad byte leaves readable, after the first `skip` bytes of the document."""
    decompressor = zlib.decompressobj(wbits=GZIP_WINDOW)
    total = 0
    with path.open("rb") as file:
        while data := file.read(1 if total + 2 * BLOCK_BYTES > skip else READ_BYTES // 16):
            while data:
                if decompressor.eof:
                    decompressor = zlib.decompressobj(wbits=GZIP_WINDOW)
                try:
                    block = decompressor.decompress(data)
                except zlib.error:
                    return
                total += len(block)
                if total > skip and block:
                    yield block[max(0, len(block) - (total - skip)) :]
                data = decompressor.unused_data
