"""Keeping the workers' knowledge of the source up to date in the background, a moment at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from .client import Client, Report
from .folders import Folder
from .messages import Failed, Index, Indexed
from .process import WorkerProcess

SLICE_S = 0.2
REST_S = 0.1
"""Files are read for so long at a time, with a rest between: a trace or a save that comes meanwhile goes first."""
SHOWN_AFTER_S = 1.0
TOGETHER_S = 0.1
"""Files that are written within so short a time are one request."""
LISTED_FOR_S = 600.0
"""The slices of one pass go by the list of files that the first one made."""

log = logging.getLogger(__name__)


class Indexing:
    """Has the workers index folders. Runs in the event loop, and never keeps it waiting."""

    def __init__(self, client: Client, analysis: WorkerProcess, sources: WorkerProcess) -> None:
        self._client = client
        self._analysis = analysis
        self._sources = sources
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed: dict[str, dict[str, None]] = {}
        """Paths that were written, by the folder's URI."""
        self._telling: dict[str, asyncio.Task[None]] = {}

    def open(self, folder: Folder) -> None:
        """Index a folder, unless that is going on."""
        running = self._tasks.get(folder.uri)
        if running is None or running.done():
            self._tasks[folder.uri] = asyncio.create_task(self._index(folder))

    def changed(self, folder: Folder, path: str) -> None:
        """A Python file of a folder was written, made or deleted."""
        self._changed.setdefault(folder.uri, {})[path] = None
        running = self._telling.get(folder.uri)
        if running is None or running.done():
            self._telling[folder.uri] = asyncio.create_task(self._tell(folder))

    def close(self, folder: Folder) -> None:
        """Give up what is going on for a folder. The worker ends its slice by itself."""
        self._changed.pop(folder.uri, None)
        for tasks in (self._tasks, self._telling):
            if (task := tasks.pop(folder.uri, None)) is not None:
                task.cancel()

    async def _index(self, folder: Folder) -> None:
        started_s = time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            show: Report | None = None
            answer = await self._request(self._analysis, folder, (), 0.0)
            total = answer.left if answer is not None else 0
            while answer is not None and answer.left:
                if show is None and time.monotonic() - started_s > SHOWN_AFTER_S:
                    title = f"Indexing {folder.root.name}"
                    progress = self._client.show_progress(title, lambda: self._give_up(folder))
                    show = await stack.enter_async_context(progress)
                if show is not None:
                    show(1.0 - answer.left / total, f"{answer.left} files left")
                await asyncio.sleep(REST_S)
                answer = await self._request(self._analysis, folder, (), LISTED_FOR_S)
        if answer is not None:
            log.debug("%s: %d files indexed in %.1f s", folder.root, answer.files, time.monotonic() - started_s)

    async def _tell(self, folder: Folder) -> None:
        await asyncio.sleep(TOGETHER_S)
        while changed := tuple(self._changed.pop(folder.uri, ())):
            for worker in (self._analysis, self._sources):
                if worker.pid is not None:  # one that does not run will look for itself
                    await self._request(worker, folder, changed, LISTED_FOR_S)

    async def _request(
        self, worker: WorkerProcess, folder: Folder, changed: tuple[str, ...], max_age_s: float
    ) -> Indexed | None:
        """What a worker answers to a slice. None is ever cut off: that would end the process."""
        root = str(folder.real_root)
        job = asyncio.ensure_future(worker.call(lambda job_id: Index(job_id, root, changed, SLICE_S, max_age_s)))
        answer = await asyncio.shield(job)
        if isinstance(answer, Failed):
            log.warning("the source cannot be indexed: %s", answer.message)
        return answer if isinstance(answer, Indexed) else None

    def _give_up(self, folder: Folder) -> None:
        if (task := self._tasks.pop(folder.uri, None)) is not None:
            task.cancel()
