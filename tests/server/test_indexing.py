"""The background index: a moment at a time, behind what somebody waits for, and kept up file by file."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from torchtraceap.codemap import cache
from torchtraceap.server import indexing
from torchtraceap.server.folders import Folder
from torchtraceap.server.indexing import Indexing
from torchtraceap.server.jobs import Pipeline
from torchtraceap.server.messages import Failed, Index, Indexed, Request


class FakeClient:
    """Notes the progress that is shown."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.shown: list[tuple[float, str]] = []
        self.cancel: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def show_progress(
        self, title: str, cancel: Callable[[], None]
    ) -> AsyncIterator[Callable[[float, str], None]]:
        self.titles.append(title)
        self.cancel = cancel
        yield lambda fraction, message: self.shown.append((fraction, message))


class FakeWorker:
    """Answers with so many files left, each time fewer."""

    def __init__(self, left: int = 0, answer: Failed | None = None) -> None:
        self.pid: int | None = 1
        self.jobs: list[Index] = []
        self._left = left
        self._answer = answer

    async def call(self, job: Callable[[int], Request]) -> Indexed | Failed:
        made = job(len(self.jobs))
        assert isinstance(made, Index)
        self.jobs.append(made)
        await asyncio.sleep(0.001)
        if self._answer is not None:
            return self._answer
        self._left = max(self._left - 1, 0)
        return Indexed(made.id, 9, self._left)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path.as_uri(), tmp_path)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "REST_S", 0.0)
    monkeypatch.setattr(indexing, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(indexing, "TOGETHER_S", 0.01)


async def done(one: Indexing) -> None:
    await asyncio.gather(*one._tasks.values(), *one._telling.values(), return_exceptions=True)


async def test_slices_go_on_until_nothing_is_left(folder: Folder) -> None:
    client, worker = FakeClient(), FakeWorker(left=4)
    one = Indexing(client, worker, FakeWorker())  # pyright: ignore[reportArgumentType]
    one.open(folder)
    one.open(folder)
    await done(one)
    assert len(worker.jobs) == 4
    assert [job.max_age_s > 0 for job in worker.jobs] == [False, True, True, True], "one look at what files there are"
    assert client.titles == [f"Indexing {folder.root.name}"]
    assert [message for _, message in client.shown] == ["3 files left", "2 files left", "1 files left"]
    assert [fraction for fraction, _ in client.shown] == [0.0, pytest.approx(1 / 3), pytest.approx(2 / 3)]


async def test_a_small_folder_shows_no_progress(folder: Folder) -> None:
    client = FakeClient()
    one = Indexing(client, FakeWorker(left=1), FakeWorker())  # pyright: ignore[reportArgumentType]
    one.open(folder)
    await done(one)
    assert client.titles == []


async def test_it_can_be_given_up(folder: Folder) -> None:
    client, worker = FakeClient(), FakeWorker(left=10_000)
    one = Indexing(client, worker, FakeWorker())  # pyright: ignore[reportArgumentType]
    one.open(folder)
    while not client.shown:
        await asyncio.sleep(0.001)
    client.cancel()
    await asyncio.sleep(0.05)
    count = len(worker.jobs)
    await asyncio.sleep(0.05)
    assert len(worker.jobs) == count


async def test_files_written_together_are_one_request(folder: Folder) -> None:
    worker, asleep = FakeWorker(), FakeWorker()
    asleep.pid = None
    one = Indexing(FakeClient(), worker, asleep)  # pyright: ignore[reportArgumentType]
    for path in ("a.py", "b.py", "a.py"):
        one.changed(folder, path)
    await done(one)
    assert [job.changed for job in worker.jobs] == [("a.py", "b.py")] and asleep.jobs == []


async def test_a_worker_that_fails_ends_it(folder: Folder) -> None:
    worker = FakeWorker(answer=Failed(0, "died"))
    one = Indexing(FakeClient(), worker, FakeWorker())  # pyright: ignore[reportArgumentType]
    one.open(folder)
    await done(one)
    assert len(worker.jobs) == 1


def test_the_worker_reads_in_slices_and_then_file_by_file(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for number in range(3):
        (root / f"m{number}.py").write_text(f"def f{number}(): pass\n")
        then = time.time_ns() - 3_600_000_000_000
        os.utime(root / f"m{number}.py", ns=(then, then))
    pipeline = Pipeline("source")
    answers = [pipeline.index(Index(1, str(root), (), 0.0, 600.0)) for _ in range(3)]
    assert [(answer.files, answer.left) for answer in answers] == [(3, 2), (3, 1), (3, 0)]
    assert set(cache.load(cache.cache_path(root))) == {"m0.py", "m1.py", "m2.py"}
    (root / "m1.py").write_text("def changed(): pass\n")
    assert pipeline.index(Index(2, str(root), ("m1.py",), 1.0, 600.0)).left == 0
    assert pipeline._survey(str(root)).where(lambda facts: facts.defines("changed")) == ["m1.py"]
