"""Writing an answer with a causal language model, held to a JSON schema.

Three things make it quick beside `generate`: tokens that the schema forces are read in one pass with their neighbours
instead of being written one by one; what a prompt begins with like the one before is not read again; and nothing runs
per token but the model and the mask. The first matters most: more than half of an answer is the schema's own text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import DynamicCache, PreTrainedModel

from .base import Cancelled, Watch
from .json_mask import JsonMask, Vocabulary

TEMPERATURE = 0.4
"""Of samples other than the first: enough to differ where the model is unsure, and not where it is sure."""


@dataclass(frozen=True, slots=True)
class Written:
    """The tokens of an answer."""

    tokens: list[int]
    is_whole: bool


class Decoder:
    """One model, and what it has read last."""

    def __init__(self, model: PreTrainedModel, vocabulary: Vocabulary, chunk_tokens: int) -> None:
        """A prompt is read `chunk_tokens` at a time; between two of these it can be cancelled."""
        self._model = model
        self.vocabulary = vocabulary
        self._chunk = chunk_tokens
        self.forget()

    def forget(self) -> None:
        """Give back the memory of what was read."""
        self._cache = DynamicCache(config=self._model.config)
        self._read: list[int] = []

    @torch.inference_mode()
    def write(self, prompt: Sequence[int], mask: JsonMask, most_tokens: int, seed: int, watch: Watch) -> Written:
        """Answer a prompt: greedily for seed 0, else sampled with that seed. Raises Cancelled."""
        generator = torch.Generator().manual_seed(seed) if seed else None
        self._keep_common(prompt)
        unread = list(prompt[len(self._read) :])
        answer: list[int] = []
        while True:
            forced = mask.forced()
            mask.accept(forced)
            answer += forced
            unread += forced
            if mask.is_done or len(answer) >= most_tokens:
                return Written(answer[:most_tokens], mask.is_done and len(answer) <= most_tokens)
            scores = self._scores_after(unread, watch)
            allowed = torch.from_numpy(mask.allowed(scores.numel()))
            token = _choose(scores.masked_fill(~allowed, -torch.inf), generator)
            mask.accept([token])
            answer.append(token)
            unread = [token]
            watch.on_token(len(answer))

    def _keep_common(self, prompt: Sequence[int]) -> None:
        """Drop what was read beyond where the prompt differs.

        Only whole chunks are kept: each is then read in the same pass as in any other order of questions, and the same
        question gets the same answer to the last bit. At least one token is left to be read.
        """
        common = 0
        for before, now in zip(self._read, prompt[:-1], strict=False):
            if before != now:
                break
            common += 1
        kept = common - common % self._chunk
        surplus = len(self._read) - kept
        if not kept:
            self.forget()
        elif surplus:
            self._cache.crop(-surplus)
            del self._read[kept:]

    def _scores_after(self, tokens: Sequence[int], watch: Watch) -> torch.Tensor:
        """Read on, and return the logits of the next token; [vocabulary], float32, on the CPU."""
        logits = None
        for at in range(0, len(tokens), self._chunk):
            if watch.is_cancelled():
                raise Cancelled
            part = list(tokens[at : at + self._chunk])
            ids = torch.tensor([part], device=self._model.device)
            logits = self._model(input_ids=ids, past_key_values=self._cache, use_cache=True, logits_to_keep=1).logits
            self._read += part
        assert logits is not None, "there is always something to read"
        return logits[0, -1].float().cpu()


def _choose(scores: torch.Tensor, generator: torch.Generator | None) -> int:
    if generator is None:
        return int(scores.argmax())
    return int(torch.multinomial(torch.softmax(scores / TEMPERATURE, dim=-1), 1, generator=generator))
