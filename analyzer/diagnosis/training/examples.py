"""A pair as the tokens that a model learns from: asked as it will be asked, answering as it will have to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ..answer import Answer
from ..backends.chat import chat_text
from ..prompt import write_prompt
from .pairs import Pair

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

DECIDING_WEIGHT = 8.0
"""Of a token that names the pattern or the fix; all others weigh 1. There are few of them, and they decide."""
_DECISIONS = re.compile(r'(?:^\{|,)"(?:pattern|fix)":"([^"]*")')
"""A quote inside of a text has a backslash before it, so that this is found outside of texts only."""


@dataclass(frozen=True, slots=True)
class Example:
    """Token ids of one pair. Only the answer is learned."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    """Ends with the token that ends an answer."""
    weights: tuple[float, ...]
    """Of the answer's tokens in the loss."""


def answer_text(answer: Answer) -> str:
    """The answer as constrained decoding writes it: no blanks, fields in their order, no edit where there is none."""
    fields = msgspec.to_builtins(answer)
    if not answer.edit:
        del fields["edit"]
    return msgspec.json.encode(fields).decode()


def make_example(pair: Pair, tokenizer: Tokenizer, budget: int, order_seed: int) -> Example:
    """The pair's tokens, its prompt written for `budget` tokens with its lists in the order of `order_seed`."""

    def tokens_of(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False)

    def count_tokens(text: str) -> int:
        return len(tokens_of(text))

    prompt = write_prompt(pair.dossier, count_tokens, budget, order_seed).prompt
    text = answer_text(pair.answer)
    coded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    deciding = [match.span(1) for match in _DECISIONS.finditer(text)]
    weights = [
        DECIDING_WEIGHT if any(first < end and start < last for start, end in deciding) else 1.0
        for first, last in coded["offset_mapping"]
    ]
    end = tokenizer.convert_tokens_to_ids(str(tokenizer.eos_token))
    assert isinstance(end, int)
    return Example(
        prompt=tuple(tokens_of(chat_text(tokenizer, prompt))),
        answer=(*coded["input_ids"], end),
        weights=(*weights, 1.0),
    )
