"""The facts of a workspace: kept up with the disk, kept for the next start, never trusted from a damaged file."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from torchtraceap.codemap import cache
from torchtraceap.codemap.disk import ReadLimits
from torchtraceap.codemap.facts import FileFacts
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.survey import Survey

HOUR_NS = 3_600_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = (tmp_path / "root").resolve()
    write(folder / "net.py", "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x): return x\n")
    write(folder / "train.py", "from net import Net\nmodel = Net()\n")
    write(folder / "pkg" / "plain.py", "def helper(): pass\n")
    return folder


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "one.msgpack"


def write(path: Path, text: str, age_ns: int = HOUR_NS) -> None:
    """Write a file that was changed so long ago: what changed just now is read twice."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    then = time.time_ns() - age_ns
    os.utime(path, ns=(then, then))


def ready(root: Path, stored: Path | None = None) -> Survey:
    survey = Survey(root, cache=stored)
    survey.refresh()
    survey.read()
    return survey


def holding(survey: Survey, word: str) -> list[str]:
    return survey.where(lambda facts: facts.holds(word))


def test_finds_files_by_what_they_say(root: Path) -> None:
    survey = ready(root)
    assert survey.paths() == ("net.py", "pkg/plain.py", "train.py")
    assert holding(survey, "Net") == ["net.py", "train.py"]
    assert survey.where(lambda facts: facts.defines_class("Net")) == ["net.py"]
    assert survey.where(lambda facts: facts.calls("Net")) == ["train.py"]


def test_reads_a_few_at_a_time(root: Path) -> None:
    survey = Survey(root)
    survey.refresh()
    seen: list[float] = []
    assert survey.read(within_s=0.0, on_progress=seen.append) == 2
    assert survey.read(on_progress=seen.append) == 0
    assert seen == [pytest.approx(1 / 3), pytest.approx(1 / 2), pytest.approx(1.0)]


def test_a_refresh_reads_only_what_changed(root: Path) -> None:
    survey = ready(root)
    before = survey.facts("train.py")
    write(root / "net.py", "class Other: pass\n", age_ns=HOUR_NS // 2)
    write(root / "new.py", "Net\n")
    (root / "pkg" / "plain.py").unlink()
    survey.refresh()
    assert survey.left == 2
    assert holding(survey, "Net") == ["new.py", "train.py"]
    assert survey.paths() == ("net.py", "new.py", "train.py") and survey.facts("pkg/plain.py") is None
    assert survey.facts("train.py") is before


def test_the_list_of_files_may_be_some_seconds_old(root: Path) -> None:
    survey = ready(root)
    write(root / "new.py", "Net\n")
    survey.refresh(max_age_s=60.0)
    assert "new.py" not in survey.paths()
    survey.refresh()
    assert "new.py" in survey.paths()


def test_one_file_is_brought_up_to_date_alone(root: Path) -> None:
    survey = ready(root)
    write(root / "net.py", "Changed\n", age_ns=HOUR_NS // 2)
    write(root / "train.py", "Unseen\n", age_ns=HOUR_NS // 2)
    survey.update("net.py")
    assert holding(survey, "Changed") == ["net.py"] and holding(survey, "Unseen") == []
    (root / "train.py").unlink()
    survey.update("train.py")
    assert survey.paths() == ("net.py", "pkg/plain.py") and survey.facts("train.py") is None


def test_a_new_file_is_found_though_the_list_is_young(root: Path) -> None:
    survey = ready(root)
    write(root / "new.py", "Fresh\n")
    survey.update("new.py")
    survey.refresh(max_age_s=60.0)
    assert holding(survey, "Fresh") == ["new.py"]


@pytest.mark.parametrize("path", ["../out.py", "/etc/passwd", "net.txt", "\0.py", "gone/x.py"])
def test_other_paths_change_nothing(root: Path, path: str) -> None:
    survey = ready(root)
    survey.update(path)
    assert survey.paths() == ("net.py", "pkg/plain.py", "train.py")


def test_a_file_written_twice_in_one_moment_is_read_again(root: Path) -> None:
    write(root / "net.py", "one\n", age_ns=0)
    survey = ready(root)
    info = (root / "net.py").stat()
    (root / "net.py").write_text("two\n")
    os.utime(root / "net.py", ns=(info.st_atime_ns, info.st_mtime_ns))
    survey.refresh()
    assert holding(survey, "two") == ["net.py"]


def test_the_next_start_reads_nothing(root: Path, stored: Path) -> None:
    assert ready(root, stored).save()
    survey = Survey(root, cache=stored)
    survey.refresh()
    assert survey.left == 0
    assert holding(survey, "Net") == ["net.py", "train.py"]
    assert not survey.save(), "nothing is new"


def test_content_that_only_looks_newer_is_known(root: Path, stored: Path) -> None:
    ready(root, stored).save()
    os.utime(root / "net.py")
    survey = ready(root, stored)
    assert not survey.save() and holding(survey, "Net") == ["net.py", "train.py"]


def test_two_daemons_share_one_file(root: Path, stored: Path) -> None:
    one, other = ready(root, stored), ready(root, stored)
    assert one.save() and other.save()
    assert set(cache.load(stored)) == set(one.paths())
    assert [file.name for file in stored.parent.iterdir()] == [stored.name], "nothing half written is left"


def test_a_damaged_file_counts_as_none(root: Path, stored: Path) -> None:
    ready(root, stored).save()
    data = stored.read_bytes()
    assert cache.load(stored)
    for damaged in (b"", data[:-1], data[: len(data) // 2], b"x" + data, data[:-1] + bytes([data[-1] ^ 1])):
        stored.write_bytes(damaged)
        assert cache.load(stored) == {}
        assert holding(ready(root, stored), "Net") == ["net.py", "train.py"]


@pytest.mark.parametrize(
    "body",
    [
        {"net.py": 3},
        {"net.py": [1, 2, 3, b"", ["", b"", b"", "yes"]]},
        [1, 2],
        {"net.py": [1, 2, 3, b"", [".a\n.b\n", b"\0\0\0\0", b"", True]]},
        {"net.py": [1, 2, 3, b"", ["", b"", b"abc", True]]},
    ],
)
def test_entries_that_are_none_are_left_out(stored: Path, body: object) -> None:
    """They are sealed as ours would be, so only their own form can give them away."""
    encoded = msgspec.msgpack.encode(body)
    stored.parent.mkdir(parents=True)
    stored.write_bytes(cache._MARK + cache._digest(encoded) + encoded)
    assert cache.load(stored) == {}


def test_what_is_no_file_is_not_opened(stored: Path) -> None:
    stored.parent.mkdir(parents=True)
    os.mkfifo(stored)
    assert cache.load(stored) == {}


def test_too_much_is_not_kept(root: Path, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 10)
    assert not ready(root, stored).save() and not stored.exists()


def test_a_cache_that_cannot_be_written_costs_nothing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    survey = ready(root, tmp_path / "file" / "one.msgpack")
    assert not survey.save() and holding(survey, "Net") == ["net.py", "train.py"]


def test_old_workspaces_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_FILES", 2)
    entry = cache.Entry(0, 0, 0, b"", FileFacts())
    for number in range(4):
        assert cache.store(tmp_path / f"{number}.msgpack", {"a.py": entry})
        os.utime(tmp_path / f"{number}.msgpack", ns=(number, number))
    assert cache.store(tmp_path / "new.msgpack", {})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["3.msgpack", "new.msgpack"]


def test_what_cannot_be_read_says_nothing(root: Path) -> None:
    write(root / "big.py", "Net" + " " * 100)
    (root / "bytes.py").write_bytes(b"\xff\xfe Net \x00")
    survey = Survey(root, ReadLimits(file_bytes=80))
    survey.refresh()
    assert survey.facts("big.py") == FileFacts()
    assert "bytes.py" in holding(survey, "Net")


def test_a_file_that_vanishes_meanwhile_says_nothing(root: Path) -> None:
    survey = Survey(root)
    survey.refresh()
    (root / "net.py").unlink()
    assert holding(survey, "Net") == ["train.py"]


def test_a_workspace_asks_unsaved_texts_too(root: Path) -> None:
    survey = ready(root)
    workspace = open_workspace(root, {"train.py": "nothing\n", "unsaved.py": "build(Net)\n"}, survey=survey)
    assert workspace.holding("Net") == ("net.py", "unsaved.py")
    assert workspace.calling("build", "Net") == ("unsaved.py",)
    assert workspace.facts("train.py").holds("nothing") and workspace.facts("no/such.py") == FileFacts()
