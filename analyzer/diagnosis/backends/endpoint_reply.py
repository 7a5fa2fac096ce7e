"""Putting an answer together from what an endpoint sends. Nothing that it sends is trusted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..text import sentence
from .base import BackendError, JsonSchema

END = "[DONE]"
LONGEST_REPLY = 200_000
"""Characters; no answer to a schema of ours comes near."""
MOST_BYTES = 20_000_000
"""Of all events of one answer, with what is not part of its text, as thoughts and figures are."""
LONGEST_REASON = 200
MOST_OBJECTS = 500
"""Opening braces of one text from which JSON is looked for."""
_WHOLE = ("stop", "eos", "tool_calls", "function_call")
"""Reasons to finish that leave nothing out."""


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


class OffSchema(Exception):
    """The answer is no JSON of the schema. The text is the answer's."""


@dataclass(slots=True)
class Reply:
    """An answer on its way."""

    parts: list[str] = field(default_factory=list)
    tokens: int = 0
    """So far; events with text in them, until the server gives the number."""
    prompt_tokens: int | None = None
    finish_reason: str | None = None
    is_ended: bool = False
    _characters: int = 0
    _bytes: int = 0
    _answer_tokens: int | None = None

    def take(self, data: str) -> None:
        """Add one event's data, a chat completion chunk or a whole chat completion. Raises BackendError if it is none,
        reports an error, or is more than can be an answer."""
        self._bytes += len(data)
        if data.strip() == END:
            self.is_ended = True
            return
        try:
            chunk = msgspec.json.decode(data, type=_Chunk)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise BackendError("the endpoint sent what is no chat completion") from None
        if chunk.error:
            raise BackendError(f"the endpoint gave up: {sentence(said(json.dumps(chunk.error)), LONGEST_REASON)}")
        for choice in chunk.choices[:1]:
            self._add((choice.delta or choice.message or _Delta()).content or "")
            self.finish_reason = choice.finish_reason or self.finish_reason
        if chunk.usage is not None:
            self.prompt_tokens, self._answer_tokens = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        if self._characters > LONGEST_REPLY or self._bytes > MOST_BYTES:
            raise BackendError("the endpoint sends more than an answer can be")

    def _add(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self.tokens += 1
            self._characters += len(text)

    @property
    def answer_tokens(self) -> int:
        """As the server counts them; else the events that had text in them."""
        given = self._answer_tokens
        return given if given is not None and given >= 0 else self.tokens

    @property
    def is_finished(self) -> bool:
        """Whether its end came."""
        return self.is_ended or self.finish_reason is not None

    @property
    def is_whole(self) -> bool:
        """False if it reached the most tokens allowed."""
        return self.finish_reason != "length"

    def check(self) -> None:
        """Raises BackendError if the finished answer is empty or was stopped for a reason that makes it none."""
        reason = sentence(self.finish_reason or "none", LONGEST_REASON)
        if not self.parts:
            raise BackendError(f"the endpoint answered nothing (finish reason: {reason})")
        if self.finish_reason not in (*_WHOLE, "length", None):
            raise BackendError(f"the endpoint stopped its answer (finish reason: {reason})")

    @property
    def text(self) -> str:
        """All that was said."""
        return "".join(self.parts)


def json_in(text: str, schema: JsonSchema) -> str:
    """The last JSON object in a text that has the members that the schema requires: models think aloud before they
    answer, or put a fence round it. Raises OffSchema if there is none."""
    decoder = json.JSONDecoder()
    required = set(schema.get("required", ()))
    found, start = "", text.find("{")
    for _ in range(MOST_OBJECTS):
        if start < 0:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            value, end = None, start + 1
        if isinstance(value, dict) and required <= value.keys():
            found = text[start:end]
        start = text.find("{", end)
    if not found:
        raise OffSchema(text)
    return found


def said(body: str | bytes) -> str:
    """The message in an error's body, which is JSON in one of several forms, or its text."""
    text = body if isinstance(body, str) else body.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for name in ("error", "message", "detail"):
        if isinstance(value, dict) and name in value:
            value = value[name]
    return value if isinstance(value, str) else json.dumps(value)
