from __future__ import annotations

import gzip
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchtraceap.analyzer.trace.settle import is_complete
from torchtraceap.server import watcher as module
from torchtraceap.server.settings import DEFAULT_TRACE_FOLDERS
from torchtraceap.server.watcher import Listener, TraceFolders, Watcher

TRACE = b'{"traceEvents": []}'


class Heard:
    """What a watcher has told."""

    def __init__(self, root: Path, patterns: tuple[str, ...] = DEFAULT_TRACE_FOLDERS) -> None:
        self.existing: list[str] | None = None
        self.traces: list[str] = []
        self.deleted: list[str] = []
        self.sources: list[str] = []
        self.began = threading.Event()
        listener = Listener(
            self._on_existing,
            lambda path, ns: self.traces.append(path.name),
            lambda path: self.deleted.append(path.name),
            lambda path: self.sources.append(path.name),
        )
        self.watcher = Watcher(TraceFolders(root, patterns), listener, is_complete)

    def _on_existing(self, found: list[tuple[Path, int]]) -> None:
        self.existing = [path.name for path, _ in found]
        self.began.set()

    def begin(self) -> Heard:
        self.watcher.start()
        assert self.began.wait(20)
        return self


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[..., Heard]]:
    started: list[Heard] = []

    def begin(**options) -> Heard:
        started.append(Heard(tmp_path, **options))
        return started[-1].begin()

    yield begin
    for heard in started:
        heard.watcher.stop()


def until(condition: Callable[[], object], within_s: float = 15.0) -> None:
    end_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def put(path: Path, content: bytes = TRACE, age_s: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if age_s:
        os.utime(path, (time.time() - age_s,) * 2)
    return path


@pytest.mark.parametrize(
    ("path", "is_trace"),
    [
        ("runs/a.json", True),
        ("experiments/runs/deep/a.json.gz", True),
        ("log/a.pt.trace.json.gz", True),
        ("logs/x/a.json", True),
        ("profiles/a.json", True),
        ("traces/a.json", True),
        ("a.pt.trace.json", True),
        ("deep/host.123.pt.trace.json.gz", True),
        ("a.json", False),
        ("runs/a.txt", False),
        ("runs/.a.json", False),
        ("data/labels.json", False),
    ],
)
def test_what_is_a_trace(tmp_path: Path, path: str, is_trace: bool) -> None:
    assert TraceFolders(tmp_path, DEFAULT_TRACE_FOLDERS).is_trace(tmp_path / path) == is_trace


def test_what_is_there_is_told_newest_first(tmp_path: Path, watch: Callable[..., Heard]) -> None:
    put(tmp_path / "runs" / "old.json", age_s=100)
    put(tmp_path / "runs" / "new.json", age_s=10)
    put(tmp_path / "node_modules" / "runs" / "x.json")
    put(tmp_path / "venv" / "runs" / "x.json")
    heard = watch()
    assert heard.existing == ["new.json", "old.json"]
    time.sleep(0.4)
    assert heard.traces == []


def test_a_trace_is_told_once_when_it_is_whole(tmp_path: Path, watch: Callable[..., Heard]) -> None:
    heard = watch()
    data = gzip.compress(TRACE + b" " * 50_000)
    path = put(tmp_path / "runs" / "new" / "a.json.gz", data[:10])
    time.sleep(0.6)
    assert heard.traces == [], "its gzip trailer is not there yet"
    with path.open("ab") as stream:
        stream.write(data[10:])
    until(lambda: heard.traces == ["a.json.gz"])
    time.sleep(0.5)
    assert heard.traces == ["a.json.gz"]
    put(path, gzip.compress(TRACE))
    until(lambda: len(heard.traces) == 2)


def test_a_file_that_stays_unfinished_is_told_in_the_end(
    tmp_path: Path, watch: Callable[..., Heard], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GIVE_UP_S", 0.5)
    heard = watch()
    put(tmp_path / "a.pt.trace.json", b'{"traceEvents": [')
    until(lambda: heard.traces == ["a.pt.trace.json"])


def test_a_file_moved_in_and_a_folder_made_again(tmp_path: Path, watch: Callable[..., Heard]) -> None:
    heard = watch()
    put(tmp_path / "a.tmp").rename(tmp_path / "a.pt.trace.json")
    until(lambda: heard.traces == ["a.pt.trace.json"])
    for number in range(2):
        path = put(tmp_path / "runs" / f"{number}.json")
        until(lambda path=path: path.name in heard.traces)
        path.unlink()
        path.parent.rmdir()
        until(lambda path=path: path.name in heard.deleted)


def test_folders_outside_and_behind_links(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    far, scratch = tmp_path_factory.mktemp("far"), tmp_path_factory.mktemp("scratch")
    (tmp_path / "runs").symlink_to(scratch)
    put(scratch / "linked.json", age_s=5)
    heard = Heard(tmp_path, ("runs/", str(far))).begin()
    try:
        assert heard.existing == ["linked.json"]
        put(far / "deep" / "a.json")
        put(scratch / "b.json")
        until(lambda: {"a.json", "b.json"} <= set(heard.traces))
    finally:
        heard.watcher.stop()


def test_without_any_event_the_folders_are_looked_through(
    tmp_path: Path, watch: Callable[..., Heard], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a network file system, or when the system has no watches left."""
    monkeypatch.setattr(module, "SWEEP_EVERY_S", 0.3)
    monkeypatch.setattr(Watcher, "hint", lambda self, path: None)
    (tmp_path / "runs").mkdir()
    heard = watch()
    put(tmp_path / "runs" / "a.json")
    until(lambda: heard.traces == ["a.json"])


def test_python_files_are_told(tmp_path: Path, watch: Callable[..., Heard]) -> None:
    (tmp_path / "src").mkdir()
    heard = watch()
    put(tmp_path / "src" / "model.py", b"x = 1\n")
    until(lambda: "model.py" in heard.sources)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_hold_the_watcher_up(tmp_path: Path, watch: Callable[..., Heard]) -> None:
    (tmp_path / "runs").mkdir()
    os.mkfifo(tmp_path / "runs" / "before.json")
    heard = watch()
    os.mkfifo(tmp_path / "runs" / "after.json")
    put(tmp_path / "runs" / "real.json")
    until(lambda: heard.traces == ["real.json"])
    assert heard.existing == []
