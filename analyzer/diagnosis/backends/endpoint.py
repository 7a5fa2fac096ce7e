"""A model behind an OpenAI-compatible interface: vLLM, the llama.cpp server, Ollama, or a server that speaks like them.

Everything waits in an event loop of its own, so that cancelling, a stall and the end of the time allowed are noticed
while nothing comes.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import httpx2
import msgspec

from .base import BackendError, Cancelled, Completion, JsonSchema, Prompt, Watch
from .endpoint_http import LARGEST_BODY_BYTES, Refused, Server, TryAgain
from .endpoint_options import CHAT, MODELS, EndpointOptions, base_url
from .endpoint_reply import OffSchema, Reply, json_in
from .endpoint_request import Manner, Request
from .endpoint_tokens import most_tokens_of

POLL_S = 0.1
"""How often it is looked whether to stop."""
LIST_S = 10.0
"""For the list of models."""
_T = TypeVar("_T")


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model] = []


@dataclass(slots=True)
class _Waiting:
    """Someone who waits for an answer, and what they look at meanwhile."""

    watch: Watch
    most_s: float
    last_token_s: float | None = None
    """On the monotonic clock; None before the first token of a try."""
    trouble: str = ""
    """What came instead of an answer so far."""


_Work = Callable[[_Waiting], Coroutine[Any, Any, _T]]


class Endpoint:
    """A `Backend` that asks a server."""

    def __init__(self, options: EndpointOptions, environ: Mapping[str, str] = os.environ) -> None:
        """Raises BackendError for an address or a key that cannot be used, and where the server has to be asked for its
        models and does not answer."""
        url = base_url(options.url)
        key = _key(options.key_variable, environ)
        self._options = options
        self._manner = Manner()
        self._loop = asyncio.new_event_loop()
        self._server = Server(url, key, options.key_variable)
        try:
            first_model = partial(self._retried, self._first_model)
            self._model = options.model or self._run(first_model, _Waiting(Watch(), LIST_S))
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """Model and host: "codellama:7b at localhost:11434"."""
        return f"{self._server.clean(self._model)} at {self._server.host}"

    @property
    def prompt_budget(self) -> int:
        """As set: what the server's model holds is not known."""
        return self._options.prompt_budget

    def count_tokens(self, text: str) -> int:
        """A guess from above: the server's tokenizer is not known."""
        return most_tokens_of(text)

    def complete(self, prompt: Prompt, schema: JsonSchema, most_tokens: int, seed: int, watch: Watch) -> Completion:
        """See `Backend`. A whole answer is JSON that has the members that the schema requires."""
        start_s = time.monotonic()
        request = Request(self._model, prompt, schema, most_tokens, seed)
        reply = self._run(partial(self._in_some_manner, request), _Waiting(watch, self._options.timeout_s))
        guess = self.count_tokens(prompt.system) + self.count_tokens(prompt.user)
        return Completion(
            text=json_in(reply.text, schema) if reply.is_whole else reply.text,
            prompt_tokens=guess if reply.prompt_tokens is None else reply.prompt_tokens,
            answer_tokens=reply.answer_tokens,
            seconds=time.monotonic() - start_s,
            is_whole=reply.is_whole,
        )

    def close(self) -> None:
        """Close the connections."""
        if not self._loop.is_closed():
            self._loop.run_until_complete(self._server.close())
            self._loop.close()

    def _run(self, work: _Work[_T], waiting: _Waiting) -> _T:
        return self._loop.run_until_complete(self._watched(work, waiting))

    async def _watched(self, work: _Work[_T], waiting: _Waiting) -> _T:
        """What the work gives. Raises Cancelled if the caller wants no more, BackendError if it takes too long."""
        host, stall_s = self._server.host, self._options.stall_s
        end_s = time.monotonic() + waiting.most_s
        task = asyncio.ensure_future(work(waiting))
        try:
            while not (await asyncio.wait({task}, timeout=POLL_S))[0]:
                now_s = time.monotonic()
                if waiting.watch.is_cancelled():
                    raise Cancelled
                if now_s > end_s:
                    trouble = f"; before that {waiting.trouble}" if waiting.trouble else ""
                    raise BackendError(f"{host} did not answer within {waiting.most_s:g} s{trouble}")
                if waiting.last_token_s is not None and now_s > waiting.last_token_s + stall_s:
                    raise BackendError(f"{host} sent nothing for {stall_s:g} s in the middle of its answer")
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _in_some_manner(self, request: Request, waiting: _Waiting) -> Reply:
        """The answer in the first manner that the server takes and keeps to, which is remembered."""
        manner: Manner | None = self._manner
        complaint = ""
        while manner is not None:
            try:
                reply = await self._retried(partial(self._ask, manner.body(request)), waiting)
                if reply.is_whole:
                    json_in(reply.text, request.schema)
                self._manner = manner
                return reply
            except Refused as refusal:
                manner = manner.after(str(refusal))
                complaint = complaint or f"{self._server.host} refuses the request: {refusal}"
            except OffSchema as answer:
                manner = manner.with_next_schema()
                said = self._server.clean(str(answer))
                complaint = complaint or f"{self._server.host} does not keep to the answer's schema: {said}"
            waiting.trouble = complaint
        raise BackendError(complaint)

    async def _retried(self, attempt: _Work[_T], waiting: _Waiting) -> _T:
        """What an attempt gives; made again after a wait while the server is busy or broken."""
        wait_s = self._options.first_wait_s
        tries = 1
        while True:
            try:
                return await attempt(waiting)
            except TryAgain as busy:
                if tries >= self._options.most_tries:
                    raise BackendError(f"{busy} (tried {tries} times)") from None
                if busy.wait_s > self._options.longest_wait_s:
                    raise BackendError(f"{busy} (asks to wait {busy.wait_s:.0f} s)") from None
                waiting.last_token_s, waiting.trouble = None, str(busy)
                await asyncio.sleep(max(busy.wait_s, wait_s * random.uniform(0.75, 1.25)))
                wait_s = min(wait_s * 2, self._options.longest_wait_s)
                tries += 1

    async def _ask(self, body: bytes, waiting: _Waiting) -> Reply:
        """One request and its answer, as it streams in."""
        reply = Reply()
        async with self._server.response("POST", CHAT, body) as response:
            if response.headers.get("content-type", "").startswith("application/json"):  # it did not stream
                reply.take((await self._server.read(response)).decode("utf-8", "replace"))
            else:
                await self._stream(httpx2.EventSource(response, max_event_size=LARGEST_BODY_BYTES), reply, waiting)
        if not reply.is_finished:
            raise TryAgain(f"{self._server.host} broke off its answer")
        reply.check()
        return reply

    async def _stream(self, events: httpx2.EventSource, reply: Reply, waiting: _Waiting) -> None:
        """Put the events into the reply, up to its end."""
        async with aclosing(cast("AsyncGenerator[httpx2.ServerSentEvent]", aiter(events))) as stream:
            async for event in stream:
                tokens_before = reply.tokens
                reply.take(event.data)
                if reply.tokens > tokens_before:
                    waiting.last_token_s = time.monotonic()
                    waiting.watch.on_token(reply.tokens)
                if waiting.watch.is_cancelled():
                    raise Cancelled
                if reply.is_ended:
                    break

    async def _first_model(self, _: _Waiting) -> str:
        async with self._server.response("GET", MODELS) as response:
            raw = await self._server.read(response)
        try:
            models = msgspec.json.decode(raw, type=_Models).data
        except (msgspec.DecodeError, RecursionError):
            models = []
        if not models:
            raise BackendError(f"{self._server.host} lists no model: name one in the settings")
        return models[0].id


def _key(variable: str, environ: Mapping[str, str]) -> str:
    """The key in an environment variable, "" if none is named. Raises BackendError if it is missing or no key."""
    if not variable:
        return ""
    key = environ.get(variable, "").strip()
    if not key:
        raise BackendError(f"the environment variable {variable}, which is to hold the endpoint's key, is not set")
    if not (key.isascii() and key.isprintable()):
        raise BackendError(f"what the environment variable {variable} holds is no key")
    return key
