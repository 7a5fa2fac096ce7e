"""The log, sent to the editor: `window/logMessage`, never a message box, and nothing but crashes on standard error."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable

from lsprotocol import types as lsp

PACKAGE = __name__.partition(".server")[0]
LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}

Send = Callable[[lsp.LogMessageParams], None]


class ClientLog(logging.Handler):
    """Sends log records to the client, from whatever thread they come, in the event loop's."""

    def __init__(self, send: Send, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._send = send
        self._loop = loop
        self._sending = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record. What is logged because sending failed is not sent: that could go on for ever."""
        if getattr(self._sending, "active", False) or self._loop.is_closed():
            return
        params = lsp.LogMessageParams(type=_message_type(record.levelno), message=self.format(record))
        try:
            is_ours = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_ours = False
        if is_ours:
            self._deliver(params)
        else:
            with contextlib.suppress(RuntimeError):  # the loop was closed just now
                self._loop.call_soon_threadsafe(self._deliver, params)

    def _deliver(self, params: lsp.LogMessageParams) -> None:
        self._sending.active = True
        try:
            self._send(params)
        except (OSError, ValueError) as error:  # the pipe is closed
            logging.getLogger(__name__).debug("a log message could not be sent: %s", error)
        finally:
            self._sending.active = False


def send_log(send: Send, loop: asyncio.AbstractEventLoop) -> ClientLog:
    """From now on send this package's log, and warnings of pygls and asyncio, to the client.

    `loop` is the one pygls runs in.
    """
    handler = ClientLog(send, loop)
    for name in (PACKAGE, "pygls", "asyncio"):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).propagate = False
    # Below warnings, pygls logs every message that it sends, these among them.
    logging.getLogger("pygls").setLevel(logging.WARNING)
    return handler


def set_level(name: str) -> None:
    """Set how much is logged: "error", "warning", "info" or "debug"."""
    logging.getLogger(PACKAGE).setLevel(LEVELS[name])


def _message_type(level: int) -> lsp.MessageType:
    if level >= logging.ERROR:
        return lsp.MessageType.Error
    if level >= logging.WARNING:
        return lsp.MessageType.Warning
    return lsp.MessageType.Info if level >= logging.INFO else lsp.MessageType.Log
