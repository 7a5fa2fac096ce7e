"""Recording from the editor: a code action and command that run the program under `torchtraceap record`.

A program is run only when somebody asks: by the action, by the command, or by switching `recordOnSave` on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from ..folders import Folder
from ..recorder import command_for

if TYPE_CHECKING:
    from ..app import Server

KIND = "source.recordTrace.torchtraceap"
COMMAND = "torchtraceap.record"
CANCEL = "torchtraceap.cancelRecording"

log = logging.getLogger(__name__)


def register(server: Server) -> None:
    """Offer the commands."""

    @server.command(COMMAND)
    def record(*arguments: Any) -> dict[str, Any]:
        """Record a trace of a script (file URI), or of the folder's `recordCommand`. Answers at once."""
        found = _asked_for(server, arguments)
        if found is None:
            return _refused("no folder is open that this could be run in")
        return start(server, *found, _text(server, *found))

    @server.command(CANCEL)
    def cancel(*arguments: Any) -> None:
        """End the recordings of all folders, or of the one that holds a file (URI)."""
        found = _asked_for(server, arguments) if arguments else None
        for folder in [found[0]] if found else server.engine.folders:
            server.recorder.cancel(folder)


def offered(folder: Folder, path: str, text: str, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """The action, where there is something to run: the folder's command, or the file itself."""
    if params.context.trigger_kind == lsp.CodeActionTriggerKind.Automatic or _command(folder, path, text) == ():
        return []
    what = "trace" if folder.settings.record_command.strip() else "trace of this script"
    title = f"TorchTraceAP: record a {what}"
    command = lsp.Command(title, COMMAND, arguments=[params.text_document.uri])
    return [lsp.CodeAction(title, kind=KIND, command=command)]


def saved(server: Server, folder: Folder, path: str) -> None:
    """A file was saved: record, where the settings say so."""
    if folder.settings.record_on_save and path.endswith(".py") and not server.recorder.is_running(folder):
        text = _text(server, folder, path)
        if _command(folder, path, text):
            start(server, folder, path, text)


def start(server: Server, folder: Folder, path: str, text: str) -> dict[str, Any]:
    """Begin to record what the file `path` of this text stands for: `{"started": True}`, or why not."""
    try:
        command = command_for(folder.settings.record_command, path, text)
    except ValueError as error:
        return _refused(f"the setting recordCommand cannot be read: {error}")
    if not command:
        shown = path or "this folder"
        return _refused(f"{shown} is no script that could be run; the setting recordCommand may say what to run")
    why_not = server.recorder.start(folder, command)
    return _refused(why_not) if why_not else {"started": True, "command": list(command)}


def _command(folder: Folder, path: str, text: str) -> tuple[str, ...]:
    try:
        return command_for(folder.settings.record_command, path, text)
    except ValueError:
        return ("",)  # offered all the same: asking for it says what is wrong


def _refused(why: str) -> dict[str, Any]:
    log.warning("not recorded: %s", why)
    return {"started": False, "reason": why}


def _asked_for(server: Server, arguments: Sequence[Any]) -> tuple[Folder, str] | None:
    """The folder and file that a command is about; without a file the first folder."""
    if arguments and isinstance(arguments[0], str):
        return server.engine.folders.locate(arguments[0])
    return next(((folder, "") for folder in server.engine.folders), None)


def _text(server: Server, folder: Folder, path: str) -> str:
    document = server.engine.document(folder, path) if path else None
    if document is not None:
        return document.source
    try:
        return (folder.root / path).read_text("utf-8", errors="replace") if path.endswith(".py") else ""
    except OSError:
        return ""
