"""Commands: analyse now, clear, where the report is, restart the workers."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygls import uris

from ..engine import report_file

if TYPE_CHECKING:
    from ..app import Server

log = logging.getLogger(__name__)


def register(server: Server) -> None:
    """Offer the commands."""

    @server.command("torchtraceap.analyze")
    async def analyze(*arguments: Any) -> dict[str, int]:
        """Analyse a trace (a path or file URI), or without one the newest traces of every folder again."""
        if arguments and isinstance(arguments[0], str):
            _enqueue(server, arguments[0])
        else:
            for folder in server.engine.folders:
                await server.engine.look_again(folder)
        await server.engine.idle()
        return {"findings": sum(len(folder.state.seen) for folder in server.engine.folders)}

    @server.command("torchtraceap.clear")
    def clear(*arguments: Any) -> None:
        """Forget all findings until the next trace."""
        for folder in server.engine.folders:
            folder.state.clear()
            server.engine.publish(folder)
        server.refresh_lenses()

    @server.command("torchtraceap.showReportPath")
    def show_report_path(*arguments: Any) -> str | None:
        """The path of the newest JSON report."""
        newest = [
            (folder.state.recordings[trace].recorded_ns, report_file(folder.root, Path(trace)))
            for folder in server.engine.folders
            if (trace := folder.state.newest_trace)
        ]
        if not newest:
            log.info("there is no report yet")
            return None
        path = str(max(newest)[1])
        log.info("report: %s", path)
        return path

    @server.command("torchtraceap.restartWorker")
    async def restart_worker(*arguments: Any) -> None:
        """End the worker processes and start them afresh."""
        for worker in (server.engine.analysis, server.engine.sources):
            worker.kill()
            await worker.start()
        log.info("the workers were restarted")


def _enqueue(server: Server, given: str) -> None:
    path = Path(uris.to_fs_path(given) or given if given.startswith("file:") else given).expanduser()
    folders = list(server.engine.folders)
    if not path.is_absolute() and folders:
        path = folders[0].root / path
    found = server.engine.folders.locate_file(path)
    try:
        recorded_ns = path.stat().st_mtime_ns
    except OSError as error:
        log.error("%s cannot be analysed: %s", path, error)
        return
    for folder in [found[0]] if found else folders:
        server.engine.enqueue(folder, path, recorded_ns)
