from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchtraceap.analyzer.diagnosis.answer import Answer
from torchtraceap.analyzer.diagnosis.diagnose import Asked
from torchtraceap.server.answers import MOST_BYTES, KeptAnswers

ASKED = Asked(
    (Answer(pattern="none", stage="hardware", claims=(), cause="x", fix="none", confidence="low"),), 1, "m", 2.0, ("c",)
)


def test_answers_outlive_the_one_who_kept_them(tmp_path: Path):
    KeptAnswers(tmp_path / "new").store("a1", ASKED)
    assert KeptAnswers(tmp_path / "new").load("a1") == ASKED
    assert KeptAnswers(tmp_path / "new").load("a2") is None
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a1.json"]


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path):
    kept = KeptAnswers(tmp_path, most_files=2)
    for age, name in ((3, "a"), (2, "b")):
        kept.store(name, ASKED)
        os.utime(tmp_path / f"{name}.json", (1e9 - age, 1e9 - age))
    assert kept.load("a") == ASKED  # used again, it is the newer one
    kept.store("c", ASKED)
    assert (kept.load("a"), kept.load("b"), kept.load("c")) == (ASKED, None, ASKED)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 50_000, b"{}" + b" " * MOST_BYTES])
def test_damaged_files_are_as_good_as_none(tmp_path: Path, data: bytes):
    (tmp_path / "a.json").write_bytes(data)
    assert KeptAnswers(tmp_path).load("a") is None


def test_nothing_outside_the_folder_is_read_or_written(tmp_path: Path):
    folder = tmp_path / "kept"
    KeptAnswers(folder).store("a", ASKED)
    (folder / "a.json").rename(tmp_path / "outside.json")
    (folder / "a.json").symlink_to(tmp_path / "outside.json")
    os.mkfifo(folder / "b.json")
    kept = KeptAnswers(folder)
    assert (kept.load("a"), kept.load("b"), kept.load("../outside")) == (None, None, None)
    kept.store("../other", ASKED)
    assert not (tmp_path / "other.json").exists()
