"""Keeping an answer to a JSON schema, token by token, with llguidance."""

from __future__ import annotations

import json
from collections.abc import Sequence

import llguidance
import llguidance.hf
import llguidance.numpy
import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from .base import BackendError, JsonSchema

Vocabulary = llguidance.LLTokenizer


def vocabulary_of(tokenizer: PreTrainedTokenizerBase, model_vocabulary: int) -> Vocabulary:
    """The tokens as llguidance knows them; takes a third of a second, once per model.

    Models may have more rows than their tokenizer has tokens (padded to a round number): those are never allowed.
    Raises BackendError for tokenizers that are none of the `tokenizers` library's.
    """
    try:
        return llguidance.hf.from_tokenizer(tokenizer, n_vocab=max(model_vocabulary, len(tokenizer)))  # pyright: ignore[reportArgumentType]
    except (ValueError, AttributeError) as error:
        raise BackendError(f"its tokenizer cannot be held to a schema: {error}") from error


class JsonMask:
    """Where in the schema one answer is, and which tokens may come next."""

    def __init__(self, vocabulary: Vocabulary, schema: JsonSchema) -> None:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(
            json.dumps(schema), defaults={"whitespace_flexible": False}
        )
        self._matcher = llguidance.LLMatcher(vocabulary, grammar, log_level=0)
        self._bits = llguidance.numpy.allocate_token_bitmask(1, vocabulary.vocab_size)
        self._raise_error()

    @property
    def is_done(self) -> bool:
        """Whether the answer is whole: nothing can follow."""
        return self._matcher.is_stopped()

    def forced(self) -> list[int]:
        """The tokens that must come next, such as a key's name: no need to ask the model for them."""
        return self._matcher.compute_ff_tokens()

    def accept(self, tokens: Sequence[int]) -> None:
        """Go on by these tokens. Raises BackendError for any that is not allowed."""
        self._matcher.consume_tokens(list(tokens))
        self._raise_error()

    def allowed(self, width: int) -> NDArray[np.bool_]:
        """Of the first `width` tokens of the vocabulary, which may come next; [width]."""
        llguidance.numpy.fill_next_token_bitmask(self._matcher, self._bits)
        bits = np.unpackbits(self._bits.view(np.uint8), bitorder="little")[:width].astype(bool)
        return np.pad(bits, (0, width - bits.size))

    def _raise_error(self) -> None:
        if self._matcher.is_error():
            raise BackendError(f"the answer cannot be held to its schema: {self._matcher.get_error()}")
