"""The connection to an endpoint: what it answers over HTTP, and what its refusals mean.

No redirect is followed, no more is read than an answer can have, and the key is in no text that this module writes.
"""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx2

from ..text import sentence
from .base import BackendError
from .endpoint_options import is_on_this_machine
from .endpoint_reply import said

CONNECT_S = 10.0
LARGEST_BODY_BYTES = 1_000_000
"""Of a body that is read as a whole, and of one event in a stream."""
LARGEST_ERROR_BYTES = 4_000
LONGEST_MESSAGE = 200
_BUSY = (408, 409, 425, 429)
_NOT_UNDERSTOOD = (400, 413, 415, 422, 501)
_NAMES_OF_SCHEMA = ("response_format", "structured_outputs", "guided_json", "json_schema")
_HINT = "; the address mostly ends in /v1"


class TryAgain(Exception):
    """The server is busy or broken for now. The text says how."""

    def __init__(self, text: str, wait_s: float = 0.0) -> None:
        super().__init__(text)
        self.wait_s = wait_s
        """As long as it asks for, at least."""


class Refused(Exception):
    """The server does not take the request as it is. The text is what it says."""


class Server:
    """One server, asked below one address."""

    def __init__(self, url: str, key: str, key_variable: str) -> None:
        """`url` as `base_url` gives it; the key may be empty."""
        self.host = urlsplit(url).netloc
        self._url = url
        self._key = key
        self._key_variable = key_variable
        self._client = httpx2.AsyncClient(
            headers={"User-Agent": "torchtraceap", "Accept-Encoding": "identity"}
            | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
            follow_redirects=False,
            # Proxies that the environment names are for what leaves this machine.
            trust_env=not is_on_this_machine(url),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def clean(self, text: str) -> str:
        """What the server says, short, harmless and without the key."""
        return sentence(text.replace(self._key, "***") if self._key else text, LONGEST_MESSAGE)

    @asynccontextmanager
    async def response(self, method: str, path: str, body: bytes | None = None) -> AsyncIterator[httpx2.Response]:
        """A response that is no error, its body still to come. Raises TryAgain, Refused and BackendError, also for what
        happens while the body is read."""
        headers = {"Accept": "text/event-stream, application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._client.stream(method, self._url + path, content=body, headers=headers) as response:
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise BackendError(f"{self.host} compresses what it was asked to send as it is")
                if not response.is_success:
                    await self._fail(response)
                response.encoding = "utf-8"  # as event streams and JSON are, whatever the header says
                yield response
        except httpx2.SSEError as error:
            raise BackendError(f"{self.host} sends no chat completions: {self.clean(str(error))}{_HINT}") from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise TryAgain(f"{self.host} cannot be reached: {self._why(error)}") from None
        except httpx2.TransportError as error:
            raise TryAgain(f"the connection to {self.host} broke: {self._why(error)}") from None

    async def read(self, response: httpx2.Response) -> bytes:
        """The whole body. Raises BackendError if it is too large."""
        body = await _head(response, LARGEST_BODY_BYTES)
        if len(body) > LARGEST_BODY_BYTES:
            raise BackendError(f"{self.host} sends more than an answer can be")
        return body

    async def _fail(self, response: httpx2.Response) -> None:
        """Raise what the status and the body of an error mean."""
        status = response.status_code
        if response.has_redirect_location:
            target = self.clean(response.headers["location"])
            raise BackendError(f"{self.host} sends us on to {target}: set that address if you trust it")
        text = self.clean(said(await _head(response, LARGEST_ERROR_BYTES)))
        answer = f"{self.host} answers with status {status}: {text}"
        if status in (401, 403):
            key = f"the key in {self._key_variable} is refused" if self._key else "it wants a key"
            raise BackendError(f"{answer} ({key})")
        if status == 404:
            raise BackendError(f"{answer} (no such model or address{_HINT})")
        if status in _NOT_UNDERSTOOD or (status == 500 and any(name in text for name in _NAMES_OF_SCHEMA)):
            raise Refused(text)
        if status in _BUSY or status >= 500:
            raise TryAgain(answer, seconds_to_wait(response.headers.get("retry-after", ""), time.time()))
        raise BackendError(answer)

    def _why(self, error: httpx2.TransportError) -> str:
        return self.clean(str(error)) or type(error).__name__


def seconds_to_wait(retry_after: str, now_s: float) -> float:
    """What a Retry-After header asks for, given as seconds or as a date; 0 for what is neither (RFC 9110, 10.2.3)."""
    try:
        wait_s = float(retry_after)
    except ValueError:
        try:
            wait_s = email.utils.parsedate_to_datetime(retry_after).timestamp() - now_s
        except (ValueError, OverflowError, OSError):
            return 0.0
    return max(wait_s, 0.0) if math.isfinite(wait_s) else 0.0


async def _head(response: httpx2.Response, most_bytes: int) -> bytes:
    """The body, or its beginning, a little more than the most."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > most_bytes:
            break
    return bytes(body[: most_bytes + 1])
