from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from torchtraceap.analyzer.trace.settle import is_complete

DOCUMENT = b'{"traceEvents": [' + b", ".join(b'{"ph": "X", "ts": %d}' % ts for ts in range(20_000)) + b"]}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace"


@pytest.mark.parametrize("whole", [DOCUMENT, gzip.compress(DOCUMENT), gzip.compress(DOCUMENT) * 2])
def test_a_file_is_complete_only_with_its_last_byte(file: Path, whole: bytes) -> None:
    file.write_bytes(whole)
    assert is_complete(file)
    for lost in (4, 9, len(whole) // 3):
        file.write_bytes(whole[:-lost])
        assert not is_complete(file)


@pytest.mark.parametrize("whole", [b"[]", b"[{}] \n\0", b'{"traceEvents": []}\r\n'])
def test_white_space_may_follow(file: Path, whole: bytes) -> None:
    file.write_bytes(whole)
    assert is_complete(file)


def test_a_damaged_stream_is_not_waited_for(file: Path) -> None:
    data = bytearray(gzip.compress(DOCUMENT))
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    assert is_complete(file)


@pytest.mark.parametrize("content", [b"", b" \n", b"\x1f\x8b"])
def test_nothing_yet(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert not is_complete(file)


def test_what_cannot_be_read_is_not_complete(tmp_path: Path) -> None:
    assert not is_complete(tmp_path) and not is_complete(tmp_path / "missing")


def test_a_bomb_is_not_waited_for_and_takes_no_memory(file: Path) -> None:
    block = gzip.compress(bytes(16 << 20))
    file.write_bytes(block * 64)  # 1 GiB, in 1 MiB
    tracemalloc.start()
    assert is_complete(file)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
