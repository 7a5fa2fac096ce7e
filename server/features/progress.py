"""Work-done progress: cancelling from the editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

if TYPE_CHECKING:
    from ..app import Server


def register(server: Server) -> None:
    """Give up a job when the user says so."""

    @server.feature(lsp.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel(params: lsp.WorkDoneProgressCancelParams) -> None:
        server.cancel_progress(params.token)
