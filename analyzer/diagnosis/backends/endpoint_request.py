"""What is asked of an endpoint, in the manner that it understands.

The servers agree on messages and differ on how a schema is given. The OpenAI interface has `response_format`, which
vLLM, newer llama.cpp servers and Ollama take too; vLLM's own fields are `structured_outputs` and before 0.12
`guided_json` (its page "Structured Outputs"); llama.cpp's is `json_schema`, Ollama's is `format`. Some refuse what they
don't know, some answer 500, some ignore it (llama.cpp issues 9522, 23463 and 24097). So the next way is tried after a
refusal and also after an answer that does not keep to the schema; the last ones only ask for JSON in words.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from .base import JsonSchema, Prompt

LIVELY = 0.7
"""Temperature of answers that are not greedy."""
_DISPENSABLE = ("stream_options", "seed", "temperature")
_IN_WORDS = "Answer with one JSON object that keeps to this JSON Schema, and with nothing else:\n"


class SchemaBy(Enum):
    """Ways to give the schema, in the order in which they are tried."""

    RESPONSE_FORMAT = "response_format"
    STRUCTURED_OUTPUTS = "structured_outputs"
    GUIDED_JSON = "guided_json"
    JSON_SCHEMA = "json_schema"
    FORMAT = "format"
    JSON_AND_WORDS = "response_format json_object"
    WORDS = "words"

    def fields(self, schema: JsonSchema) -> dict[str, Any]:
        """What the request gets for it."""
        if self is SchemaBy.WORDS:
            return {}
        if self is SchemaBy.JSON_AND_WORDS:
            return {"response_format": {"type": "json_object"}}
        if self is SchemaBy.RESPONSE_FORMAT:
            given = {"name": "answer", "schema": dict(schema), "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": given}}
        return {self.value: {"json": dict(schema)} if self is SchemaBy.STRUCTURED_OUTPUTS else dict(schema)}

    @property
    def is_in_words(self) -> bool:
        """Whether the prompt must hold the schema."""
        return self in (SchemaBy.JSON_AND_WORDS, SchemaBy.WORDS)


@dataclass(frozen=True, slots=True)
class Request:
    """What one answer is asked with."""

    model: str
    prompt: Prompt
    schema: JsonSchema
    most_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Manner:
    """What a server is known to take, as far as its refusals have shown."""

    schema_by: SchemaBy = SchemaBy.RESPONSE_FORMAT
    without: frozenset[str] = frozenset()
    """Fields that it refused."""
    tokens_field: str = "max_tokens"
    has_system: bool = True
    """Whether it takes a system message."""

    def body(self, request: Request) -> bytes:
        """The request as JSON, streamed, greedy for seed 0."""
        fields: dict[str, Any] = {
            "model": request.model,
            "messages": self._messages(request),
            "stream": True,
            "stream_options": {"include_usage": True},
            self.tokens_field: request.most_tokens,
            "temperature": LIVELY if request.seed else 0.0,
            "seed": request.seed,
            **self.schema_by.fields(request.schema),
        }
        return json.dumps({name: fields[name] for name in fields if name not in self.without}).encode("utf-8")

    def after(self, refusal: str) -> Manner | None:
        """What to try after a refusal with this text: without a dispensable field that it names, else with the schema
        given in the next way. None where nothing is left."""
        for name in _DISPENSABLE:
            if name in refusal and name not in self.without:
                return replace(self, without=self.without | {name})
        if "max_completion_tokens" in refusal and self.tokens_field == "max_tokens":
            return replace(self, tokens_field="max_completion_tokens")
        if self.has_system and "system role" in refusal.lower():
            return replace(self, has_system=False)
        return self.with_next_schema()

    def with_next_schema(self) -> Manner | None:
        """With the schema given in the next way; None after the last."""
        ways = list(SchemaBy)
        later = ways[ways.index(self.schema_by) + 1 :]
        return replace(self, schema_by=later[0]) if later else None

    def _messages(self, request: Request) -> list[dict[str, str]]:
        system, user = request.prompt.system, request.prompt.user
        if self.schema_by.is_in_words:
            system += "\n\n" + _IN_WORDS + json.dumps(dict(request.schema))
        if not self.has_system:
            return [{"role": "user", "content": f"{system}\n\n{user}"}]
        return [{"role": "system", "content": system}, {"role": "user", "content": user}]
