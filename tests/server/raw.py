"""A client that says exactly what it is told to, however wrong."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .clients import FABRICATED

WITHIN_S = 30.0


class Raw:
    """A server's pipes."""

    def __init__(self, command: Sequence[str] = FABRICATED, **options: Any) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )
        assert self.process.stdin and self.process.stdout
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.seen: list[dict[str, Any]] = []

    def send(self, **message: Any) -> None:
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send_bytes(self, body: bytes) -> None:
        self.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.stdin.flush()

    def receive(self) -> dict[str, Any]:
        length = 0
        while line := self.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        message = json.loads(self.stdout.read(length))
        self.seen.append(message)
        return message

    def answer_to(self, message_id: int) -> dict[str, Any]:
        while True:
            message = self.receive()
            if message.get("id") == message_id and "method" not in message:
                return message

    def initialize(self, root: Path | None = None, **capabilities: Any) -> dict[str, Any]:
        params = {"processId": os.getpid(), "rootUri": root and root.as_uri(), "capabilities": capabilities}
        self.send(id=1, method="initialize", params=params)
        answer = self.answer_to(1)
        self.send(method="initialized", params={})
        return answer

    def ends(self) -> int:
        """Wait for the end; the exit code. Nothing but crashes belongs on standard error."""
        code = self.process.wait(WITHIN_S)
        assert self.process.stderr is not None
        assert self.process.stderr.read().decode() == ""
        for stream in (self.stdin, self.stdout, self.process.stderr):
            stream.close()
        return code
