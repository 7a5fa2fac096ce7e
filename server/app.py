"""The language server on standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from . import VERSION
from .client import Document, Report
from .engine import Engine
from .features import code_action, code_lens, commands, configuration, hover, progress, record_action, sync
from .features.tag_action import TagActions
from .folders import Folder
from .log import ClientLog, send_log
from .notebooks import SYNC, OpenNotebook, OpenNotebooks, opened_text
from .process import WorkerProcess
from .protocol import Protocol
from .recorder import Recorder
from .repairs import Repairs
from .settings import Settings

WORKER = (sys.executable, "-m", "torchtraceap.server.jobs")
PARENT_CHECK_S = 2.0
PROGRESS_WITHIN_S = 2.0

log = logging.getLogger(__name__)


class Server(LanguageServer):
    """The server, and the `Client` that its engine speaks to."""

    protocol: Protocol  # pyright: ignore[reportIncompatibleVariableOverride]
    engine: Engine
    repairs: Repairs
    recorder: Recorder

    def __init__(self, worker: Sequence[str] = WORKER) -> None:
        super().__init__(
            "torchtraceap",
            VERSION,
            protocol_cls=Protocol,
            converter_factory=default_converter,
            notebook_document_sync=SYNC,
        )
        self.base_settings = Settings()
        self.root_uris: list[str] = []
        self._worker = tuple(worker)
        self._log: ClientLog | None = None
        self._parent_watch: asyncio.Task[None] | None = None
        self._cancels: dict[str | int, Callable[[], None]] = {}
        self.open_notebooks = OpenNotebooks()
        self.tags = TagActions()
        for feature in (configuration, sync, code_action, hover, code_lens, commands, progress, record_action):
            feature.register(self)

    def begin(self) -> None:
        """Called when the client initializes, in the event loop."""
        analysis = WorkerProcess("analysis", [*self._worker, "analysis"])
        sources = WorkerProcess("source", [*self._worker, "source"])
        self.engine = Engine(self, analysis, sources)
        self.repairs = Repairs(self.engine, self._changed)
        self.engine.on_source = self.repairs.file_changed
        self.recorder = Recorder(self, self.engine)
        if self.process_id is not None and os.name == "posix":
            self._parent_watch = asyncio.create_task(self._end_with_parent(self.process_id))

    def start_logging(self) -> None:
        """Called when the client takes messages."""
        self._log = send_log(self.window_log_message, asyncio.get_running_loop())

    @property
    def encoding(self) -> str:
        """The units of the client's columns."""
        return str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding))

    @property
    def has_related(self) -> bool:
        """Whether the client shows related information."""
        documents = self.client_capabilities.text_document
        diagnostics = documents.publish_diagnostics if documents else None
        return bool(diagnostics and diagnostics.related_information)

    def documents(self) -> Iterable[Document]:
        """What the client has open: files, and notebooks as a whole."""
        opened = self.workspace.text_documents.values()
        files = [opened_text(one) for one in opened if self.workspace.get_notebook_document(cell_uri=one.uri) is None]
        return [*files, *self.notebooks()]

    def notebooks(self) -> Sequence[OpenNotebook]:
        """The notebooks that the client has open."""
        return self.open_notebooks.all()

    def publish(self, uri: str, version: int | None, diagnostics: list[lsp.Diagnostic]) -> None:
        """Show these diagnostics of a file and no others."""
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, version))

    def refresh_lenses(self) -> None:
        """Ask for the code lenses again, if the client can."""
        workspace = self.client_capabilities.workspace
        if workspace and workspace.code_lens and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    @contextlib.asynccontextmanager
    async def show_progress(self, title: str, cancel: Callable[[], None]) -> AsyncIterator[Report]:
        """Show that a job is running."""
        token = str(uuid.uuid4())
        if not await self._create_progress(token):
            yield lambda fraction, message: None
            return
        shown = self.work_done_progress
        self._cancels[token] = cancel
        shown.begin(token, lsp.WorkDoneProgressBegin(title, cancellable=True, percentage=0))

        def report(fraction: float, message: str) -> None:
            shown.report(token, lsp.WorkDoneProgressReport(message=message, percentage=round(100 * fraction)))

        try:
            yield report
        finally:
            shown.end(token, lsp.WorkDoneProgressEnd())
            shown.tokens.pop(token, None)  # pygls keeps them for ever
            del self._cancels[token]

    def cancel_progress(self, token: str | int) -> None:
        """The user no longer wants the job that is shown under this token."""
        if (cancel := self._cancels.get(token)) is not None:
            cancel()

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """Log what went wrong; pygls would pop up a message box."""
        log.error("%s: %s", source.__name__, error)

    async def run(self) -> None:
        """Serve standard input and output until one of them ends, or the client says `exit` (SystemExit)."""
        self.protocol.set_writer(StdoutWriter(sys.stdout.buffer))
        reader = StdinAsyncReader(sys.stdin.buffer, self.thread_pool)
        try:
            await run_async(threading.Event(), reader, self.protocol, log, self.report_server_error)
        finally:
            if hasattr(self, "engine"):
                await asyncio.gather(self.recorder.close(), self.engine.close())

    async def _create_progress(self, token: str) -> bool:
        window = self.client_capabilities.window
        if window is None or not window.work_done_progress:
            return False
        try:
            await asyncio.wait_for(self.work_done_progress.create_async(token), PROGRESS_WITHIN_S)
        except (asyncio.TimeoutError, JsonRpcException) as error:
            log.debug("the client shows no progress: %s", error)
            return False
        return True

    def _changed(self, folder: Folder) -> None:
        self.engine.publish(folder)
        self.refresh_lenses()

    async def _end_with_parent(self, process_id: int) -> None:
        """End when the editor has died without a word; another process may hold our standard input open."""
        while True:
            await asyncio.sleep(PARENT_CHECK_S)
            if not is_running(process_id):
                await asyncio.gather(self.recorder.close(), self.engine.close())
                os._exit(1)


def is_running(process_id: int) -> bool:
    """Whether a process exists. POSIX only."""
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def serve(worker: Sequence[str] = WORKER) -> int:
    """Serve one client on standard input and output. The exit code: 0 after an orderly end, else 1."""
    try:
        asyncio.run(Server(worker).run())
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except (BrokenPipeError, KeyboardInterrupt):
        return 1
    return 1  # the client went without a word
