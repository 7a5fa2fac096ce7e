"""From traces that appear to diagnostics that are shown: queues the work and asks the workers."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from ..analyzer.figures import format_ms
from ..analyzer.findings import Severity
from ..analyzer.trace.settle import is_complete
from ..codemap.notebook import NOTEBOOK_SUFFIX
from .client import Client, Document
from .folders import Folder, Folders, Published
from .indexing import Indexing
from .memory import Memory
from .messages import Analyze, Analyzed, Failed, Progress
from .notebooks import NotebookText, OpenNotebook
from .process import WorkerProcess
from .publish import Publisher
from .settings import Settings

if TYPE_CHECKING:
    from .watcher import Watcher

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A trace to be analysed."""

    folder: Folder
    trace: Path
    recorded_ns: int


class Engine:
    """The server's work, in the event loop's thread."""

    def __init__(self, client: Client, analysis: WorkerProcess, sources: WorkerProcess) -> None:
        self.folders = Folders()
        self.analysis = analysis
        self.sources = sources
        self._client = client
        self._indexing = Indexing(client, analysis, sources)
        self._waiting: dict[tuple[str, Path], Waiting] = {}
        self._publishers: dict[str, Publisher] = {}
        self._loop = asyncio.get_running_loop()
        self._worker: asyncio.Task[None] | None = None
        self._job: asyncio.Task[bool] | None = None
        self.on_source: Callable[[Folder, str], None] = lambda folder, path: None
        """Told when a Python file that no editor has open changed on disk."""

    # Folders and settings

    def open_folder(self, uri: str, settings: Settings) -> Folder | None:
        """Begin to watch a folder."""
        folder = self.folders.add(uri)
        if folder is not None:
            folder.settings = settings
            folder.memory = Memory(cache_file("repaired", folder.root, folder.root))
            folder.state.recall(folder.memory.load())
            self._watch(folder)
        return folder

    def close_folder(self, uri: str) -> None:
        """End watching a folder and clear what is shown of it."""
        folder = self.folders.remove(uri)
        if folder is not None:
            self._indexing.close(folder)
            self._unwatch(folder)
            folder.state.clear()
            self.publish(folder)
            self._publishers.pop(uri, None)

    def configure(self, folder: Folder, settings: Settings) -> None:
        """Apply changed settings: only what depends on them is done again."""
        old, folder.settings = folder.settings, settings
        if old == settings:
            return
        log.info("settings of %s changed", folder.root)
        if _watched(old) != _watched(settings):
            folder.state.clear()
            self._watch(folder)
        elif _of_analysis(old) != _of_analysis(settings):
            for trace, recording in folder.state.recordings.items():
                self.enqueue(folder, Path(trace), recording.recorded_ns)
        self.publish(folder)
        self._client.refresh_lenses()

    def _watch(self, folder: Folder) -> None:
        from .watcher import Listener, TraceFolders, Watcher  # the client is answered before these are imported

        self._unwatch(folder)
        if not folder.settings.enable:
            return

        def later(act: Callable[..., None]) -> Callable[..., None]:
            return lambda *arguments: self._post(act, folder, watcher, *arguments)

        listener = Listener(
            on_existing=later(self._on_existing),
            on_trace=later(self._on_trace),
            on_trace_deleted=later(self._on_trace_deleted),
            on_source=later(self._on_source),
        )
        watcher = Watcher(TraceFolders(folder.root, folder.settings.trace_folders), listener, is_complete)
        folder.watcher = watcher
        watcher.start()
        log.info("watching %s for traces in %s", folder.root, ", ".join(folder.settings.trace_folders))

    def _unwatch(self, folder: Folder) -> None:
        if folder.watcher is not None:
            folder.watcher.stop()
            folder.watcher = None

    def _post(self, act: Callable[..., None], folder: Folder, watcher: Watcher, *arguments: object) -> None:
        """From a watcher's thread: do something in the event loop's, unless the watcher has been stopped since."""

        def run() -> None:
            if folder.watcher is watcher:
                act(folder, *arguments)

        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(run)

    # What watchers report

    def _on_existing(self, folder: Folder, traces: Sequence[tuple[Path, int]]) -> None:
        recent = traces[: folder.settings.recent_traces]
        if len(traces) > len(recent):
            log.info("%d traces in %s; the newest %d are analysed", len(traces), folder.root, len(recent))
        for trace, recorded_ns in recent:
            self.enqueue(folder, trace, recorded_ns)
        self._indexing.open(folder)

    def _on_trace(self, folder: Folder, trace: Path, recorded_ns: int) -> None:
        self.enqueue(folder, trace, recorded_ns)

    def _on_trace_deleted(self, folder: Folder, trace: Path) -> None:
        self._waiting.pop((folder.uri, trace), None)
        log.info("%s was deleted", trace)
        for one in self.folders:
            if one is folder or str(trace) in one.state.recordings:
                one.state.drop(str(trace))
                self.publish(one)

    def _on_source(self, folder: Folder, file: Path) -> None:
        path = folder.relative(file)
        if path is not None:
            self._indexing.changed(folder, path)
        if path is not None and path in folder.state.paths() and self.document(folder, path) is None:
            self.on_source(folder, path)

    # Analysing

    def enqueue(self, folder: Folder, trace: Path, recorded_ns: int) -> None:
        """Analyse a trace when the worker is free, the newest of those that wait first."""
        self._waiting[(folder.uri, trace)] = Waiting(folder, trace, recorded_ns)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())

    def place_again(self, folder: Folder, traces: Iterable[str]) -> None:
        """Analyse recordings once more: a file that they ran is gone, and may be another one now."""
        for trace in traces:
            if (recording := folder.state.recordings.get(trace)) is not None and Path(trace).exists():
                self.enqueue(folder, Path(trace), recording.recorded_ns)

    async def look_again(self, folder: Folder) -> None:
        """Analyse the newest traces of a folder, also those that were before."""
        from .watcher import TraceFolders

        traces = TraceFolders(folder.root, folder.settings.trace_folders)
        found = await asyncio.to_thread(traces.existing)
        self._on_existing(folder, [(path, stamp.modified_ns) for path, stamp in found])

    async def idle(self) -> None:
        """Wait until no trace waits."""
        while self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])

    def cancel(self) -> None:
        """Give up the analysis that is running. What waits behind it is done."""
        if self._job is not None:
            self._job.cancel()

    async def _work(self) -> None:
        warming = asyncio.create_task(self.sources.start())  # what is found now will be edited soon
        while self._waiting:
            key = max(self._waiting, key=lambda key: self._waiting[key].recorded_ns)
            waiting = self._waiting.pop(key)
            self._job = asyncio.create_task(self._analyze(waiting))
            await asyncio.wait([self._job])
            if self._job.cancelled():
                log.info("analysis of %s was cancelled", waiting.trace)
            elif (error := self._job.exception()) is not None:
                log.error("analysis of %s failed", waiting.trace, exc_info=error)
        self._job = None
        await warming

    async def _analyze(self, waiting: Waiting) -> bool:
        """Analyse one trace and show what it says. False if that was not possible."""
        folder, trace = waiting.folder, waiting.trace
        report_path = str(report_file(folder.root, trace))
        queued = dict(self._waiting)

        def job(job_id: int) -> Analyze:
            return Analyze(
                job_id,
                str(trace),
                str(folder.real_root),
                self.overlay(folder),
                folder.settings.min_saving,
                folder.settings.model_type,
                report_path,
                {str(other.real_root): self.overlay(other) for other in self._others(folder)},
                folder.settings.detector,
            )

        async with self._client.show_progress(f"Analysing {trace.name}", self.cancel) as show:

            def on_progress(progress: Progress) -> None:
                show(progress.fraction, progress.stage)

            answer = await self.analysis.call(job, on_progress)
        if isinstance(answer, Failed):
            log.log(logging.ERROR if answer.details else logging.WARNING, "%s: %s", trace, answer.message)
            log.debug("%s", answer.details)
        if not isinstance(answer, Analyzed) or folder not in self.folders:
            return False
        self._drop_ranks(waiting, answer, queued)
        for other in self._others(folder):
            if found := answer.elsewhere.get(str(other.real_root)):
                self._put(other, trace, waiting.recorded_ns, found)
                log.info("%s ran files of %s", trace, other.root)
            elif str(trace) in other.state.recordings and not trace.is_relative_to(other.root):
                other.state.drop(str(trace))
                self.publish(other)
        self._take(waiting, answer)
        return True

    def _others(self, folder: Folder) -> list[Folder]:
        """The other folders in which findings are shown."""
        return [other for other in self.folders if other is not folder and other.settings.enable]

    def _put(self, folder: Folder, trace: Path, recorded_ns: int, answer: Analyzed) -> None:
        """Take what was found into a folder and show it."""

        def text_of(path: str) -> str | None:
            document = self.document(folder, path)
            return answer.sources.get(path) if document is None else document.source

        folder.state.take(answer, str(trace), recorded_ns, text_of)
        self.publish(folder)

    def _take(self, waiting: Waiting, answer: Analyzed) -> None:
        folder, trace, report = waiting.folder, waiting.trace, answer.report
        self._put(folder, trace, waiting.recorded_ns, answer)
        self._client.refresh_lenses()
        shown = sum(finding.severity is not Severity.HINT for finding in report.findings)
        summary = report.trace
        log.info(
            "%s: %d finding%s, step %s ms over %d steps, analysed in %.1f s",
            trace, shown, "" if shown == 1 else "s", format_ms(summary.step_us), summary.steps, answer.seconds,
        )  # fmt: skip
        for problem in (*summary.problems, *(f"missing from the recording: {m}" for m in summary.missing)):
            log.info("%s: %s", trace, problem)

    def _drop_ranks(self, waiting: Waiting, answer: Analyzed, queued: Mapping[tuple[str, Path], Waiting]) -> None:
        """The ranks of one job are one recording: those analysed with this one count and wait no more by themselves,
        unless they have been written again since."""
        folder = waiting.folder
        for path in answer.report.trace.paths:
            if path == str(waiting.trace):
                continue
            folder.state.drop(path)
            key = (folder.uri, Path(path))
            if key in queued and self._waiting.get(key) == queued[key]:
                del self._waiting[key]

    # Showing

    def publish(self, folder: Folder, only: str | None = None) -> None:
        """Show a folder's findings: those of the file at the path `only`, or all, where they differ from what is shown.

        A file that was edited gets its diagnostics with the new version, even if they are the same.
        """
        if only is None and folder.memory is not None:
            folder.memory.store(folder.state.repaired)
        wanted = self._wanted(folder, only)
        for uri, shown in list(folder.published.items()):
            if uri not in wanted and (only is None or shown.path == only):
                del folder.published[uri]
                self._client.publish(uri, None, [])
        for uri, shown in wanted.items():
            before = folder.published.get(uri)
            if (shown.diagnostics or before is not None) and (only is not None or shown != before):
                folder.published[uri] = shown
                self._client.publish(uri, shown.version, list(shown.diagnostics))

    def _wanted(self, folder: Folder, only: str | None) -> dict[str, Published]:
        """What is to be shown, by URI."""
        publisher, settings, state = self.publisher(folder), folder.settings, folder.state
        versions = {
            path: document.version
            for document in self._client.documents()
            if (path := self._path(folder, document.uri))
        }
        cells = {cell.uri: cell.version for notebook in self._client.notebooks() for cell in notebook.cells}
        wanted: dict[str, Published] = {}
        for path in state.paths() if only is None else {only} & state.paths():
            if settings.enable and (settings.diagnostic_mode == "workspace" or path in versions):
                for uri, diagnostics in publisher.diagnostics(path, settings).items():
                    version = cells[uri] if uri in cells else versions.get(path)
                    wanted[uri] = Published(path, version, tuple(diagnostics))
        if only is None:
            publisher.forget_gone()
            if settings.enable and settings.diagnostic_mode == "workspace":
                for uri, diagnostics in publisher.unplaced(settings).items():
                    wanted[uri] = Published(None, None, tuple(diagnostics))
        return wanted

    def publisher(self, folder: Folder) -> Publisher:
        """What turns the folder's findings into diagnostics."""
        if folder.uri not in self._publishers:
            self._publishers[folder.uri] = Publisher(
                folder.state,
                self._client.encoding,
                folder.uri_of,
                lambda trace: Path(trace).as_uri(),
                self._client.has_related,
                lambda path: self.notebook(folder, path),
            )
        return self._publishers[folder.uri]

    # Documents

    def document(self, folder: Folder, path: str) -> Document | None:
        """The open document of a file; None if it is not open."""
        return next((d for d in self._client.documents() if self._path(folder, d.uri) == path), None)

    def notebook(self, folder: Folder, path: str) -> OpenNotebook | None:
        """The open notebook of a file; None if it is not open as one."""
        return next((one for one in self._client.notebooks() if self._path(folder, one.uri) == path), None)

    def locate(self, uri: str) -> tuple[Folder, str, int] | None:
        """The folder of a document, its path in it, and how many lines of its file's text stand above it: those of
        the cells before, for a notebook's cell. None for what is not a file, and for a notebook's JSON."""
        for notebook in self._client.notebooks():
            if (cell := notebook.cell_of(uri)) is not None:
                found = self.folders.locate(notebook.uri)
                return None if found is None else (*found, cell.above)
        found = self.folders.locate(uri)
        return None if found is None or found[1].endswith(NOTEBOOK_SUFFIX) else (*found, 0)

    def overlay(self, folder: Folder) -> dict[str, str]:
        """The texts of the open documents in a folder, by path."""
        return {
            path: document.stored if isinstance(document, (OpenNotebook, NotebookText)) else document.source
            for document in self._client.documents()
            if (path := self._path(folder, document.uri))
        }

    def _path(self, folder: Folder, uri: str) -> str | None:
        found = self.folders.locate(uri)
        return found[1] if found is not None and found[0] is folder else None

    async def close(self) -> None:
        """End everything: watchers, jobs and worker processes."""
        self._waiting.clear()
        for folder in self.folders:
            self._indexing.close(folder)
            self._unwatch(folder)
        await asyncio.gather(self.analysis.close(), self.sources.close())


def _watched(settings: Settings) -> tuple[object, ...]:
    return settings.enable, settings.trace_folders, settings.recent_traces


def _of_analysis(settings: Settings) -> tuple[object, ...]:
    return settings.min_saving, settings.model_type, settings.detector


def report_file(root: Path, trace: Path) -> Path:
    """Where the JSON report of a trace is written."""
    return cache_file("reports", root, trace)


def cache_file(kind: str, root: Path, subject: Path) -> Path:
    """A file about one path of a folder, in the user's cache, which may be deleted at any time."""
    name = hashlib.blake2b(f"{root}\0{subject}".encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return platformdirs.user_cache_path("torchtraceap") / kind / f"{subject.name.partition('.')[0]}-{name}.json"
