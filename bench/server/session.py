"""A plain LSP client on a server's pipes, as thin as can be: what it measures is the server."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SERVE = (sys.executable, "-c", "from torchtraceap.server.cli import main; main()", "serve")
WITHIN_S = 120.0
CAPABILITIES = {
    "workspace": {"configuration": False},
    "textDocument": {
        "publishDiagnostics": {"relatedInformation": True},
        "codeAction": {"resolveSupport": {"properties": ["edit"]}},
    },
}


class Session:
    """One server process and the talk with it."""

    def __init__(self, root: Path, command: Sequence[str] = SERVE) -> None:
        self.started_s = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root)
        self._incoming: queue.Queue[tuple[float, dict[str, Any]]] = queue.Queue()
        self._ids = 0
        threading.Thread(target=self._read, daemon=True).start()
        folders = [{"uri": root.as_uri(), "name": root.name}]
        self.request(
            "initialize", {"processId": os.getpid(), "capabilities": CAPABILITIES, "workspaceFolders": folders}
        )
        self.initialized_s = time.perf_counter() - self.started_s
        self.notify("initialized", {})

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any) -> tuple[Any, float]:
        """Send a request; its result and how long it took, in seconds."""
        self._ids += 1
        sent_s = time.perf_counter()
        self._send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        at_s, message = self.wait(lambda message: message.get("id") == self._ids and "method" not in message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"], at_s - sent_s

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> tuple[float, dict[str, Any]]:
        """The next message that is wanted, and when it came. Others are dropped. Raises queue.Empty after a while."""
        while True:
            at_s, message = self._incoming.get(timeout=WITHIN_S)
            if wanted(message):
                return at_s, message

    def wait_for_diagnostics(self, uri: str, enough: Callable[[list[Any]], bool]) -> float:
        """When diagnostics of a file were published that are `enough`."""

        def is_published(message: dict[str, Any]) -> bool:
            params = message.get("params") or {}
            is_it = message.get("method") == "textDocument/publishDiagnostics" and params["uri"] == uri
            return is_it and enough(params["diagnostics"])

        return self.wait(is_published)[0]

    def open(self, file: Path, text: str) -> str:
        """Open a document; its URI."""
        item = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return file.as_uri()

    def close(self) -> None:
        """End in the orderly way."""
        self.request("shutdown", None)
        self.notify("exit", None)
        self.process.wait(WITHIN_S)

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        length = 0
        while line := stream.readline():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            elif not line.strip():
                self._incoming.put((time.perf_counter(), json.loads(stream.read(length))))
