"""A real HTTP server on this machine that answers each request as it is told to: well, or in some bad way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Act = Callable[["_Handler"], None]
"""Answers one request."""


@dataclass
class Got:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class FakeServer:
    """Plays its acts in order, the last one for ever; keeps the requests."""

    acts: list[Act]
    requests: list[Got] = field(default_factory=list)
    port: int = 0
    released: threading.Event = field(default_factory=threading.Event)
    """Set when the test is over, so that no act waits longer."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        self._play(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def do_GET(self) -> None:
        self._play({})

    def _play(self, body: dict[str, Any]) -> None:
        fake = self.server.fake
        fake.requests.append(Got(self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.close_connection = True
        with suppress(OSError):  # the client has gone, as it should where it is sent nonsense
            fake.acts[min(len(fake.requests), len(fake.acts)) - 1](self)

    def head(self, status: int = 200, content_type: str = "text/event-stream", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def event(self, data: str) -> None:
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()

    def wait(self, seconds: float) -> None:
        self.server.fake.released.wait(seconds)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests look at `requests`."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fake: FakeServer


@contextmanager
def serving(*acts: Act) -> Iterator[FakeServer]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.fake = FakeServer(list(acts), port=server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.fake
    finally:
        server.fake.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def chunk(text: str | None = None, finish: str | None = None) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


def pieces(text: str, size: int = 6) -> Iterable[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def answer(text: str, finish: str = "stop", usage: dict[str, Any] | None = None, delay_s: float = 0.0) -> Act:
    """A good stream; `delay_s` before the first token."""

    def act(handler: _Handler) -> None:
        handler.head()
        handler.wait(delay_s)
        for piece in pieces(text):
            handler.event(chunk(piece))
        handler.event(chunk(finish=finish))
        if usage is not None:
            handler.event(json.dumps({"choices": [], "usage": usage}))
        handler.event("[DONE]")

    return act


def events(*data: str) -> Act:
    """Just these events, then the end of the body."""

    def act(handler: _Handler) -> None:
        handler.head()
        for each in data:
            handler.event(each)

    return act


def body(content: bytes, status: int = 200, content_type: str = "application/json", **headers: str) -> Act:
    def act(handler: _Handler) -> None:
        handler.head(status, content_type, Content_Length=str(len(content)), **headers)
        handler.wfile.write(content)

    return act


def refusal(status: int, message: str, **headers: str) -> Act:
    return body(json.dumps({"error": {"message": message}}).encode(), status, **headers)


def hang_up(handler: _Handler) -> None:
    """Close the connection without a word."""


def silence(handler: _Handler) -> None:
    handler.head()
    handler.wait(30)


def stall(handler: _Handler) -> None:
    """Some tokens, then nothing more, the connection open."""
    handler.head()
    for piece in pieces('{"pattern": "no'):
        handler.event(chunk(piece))
    handler.wait(30)


def drip(handler: _Handler) -> None:
    """Signs of life for ever, and no token."""
    handler.head()
    while not handler.server.fake.released.wait(0.02):
        handler.wfile.write(b": processing\n\n")


def torrent(event: bytes) -> Act:
    """An event for ever, or a hundred megabytes of it: whichever the client bears."""

    def act(handler: _Handler) -> None:
        handler.head()
        for _ in range(100_000_000 // len(event)):
            handler.wfile.write(event)

    return act
