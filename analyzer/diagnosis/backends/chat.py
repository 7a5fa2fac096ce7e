"""A prompt as the text that a model was taught to answer: by its chat template, and nobody else's turns in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .base import Prompt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SHORTEST_CONTROL = 3
_LLAMA_CONTROLS = ("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>")


def chat_text(tokenizer: PreTrainedTokenizerBase, prompt: Prompt) -> str:
    """The whole text up to where the answer begins, with every special token written out.

    Tokenizers without a template get the form of CodeLlama-Instruct (Rozière et al. 2023). What the prompt itself says
    of control tokens, such as a source comment that ends the turn, is taken apart, so that it is read as text.
    """
    added: dict[str, int] = tokenizer.get_added_vocab()  # pyright: ignore[reportCallIssue, reportOptionalCall]
    controls = [*tokenizer.all_special_tokens, *added]
    if not tokenizer.chat_template:
        controls += _LLAMA_CONTROLS
    system, user = (harmless(text, controls) for text in (prompt.system, prompt.user))
    if not tokenizer.chat_template:
        start = tokenizer.bos_token or ""
        return f"{start}[INST] <<SYS>>\n{system}\n<</SYS>>\n\n{user} [/INST]"
    turns = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    try:
        return _by_template(tokenizer, turns)
    except Exception as error:  # noqa: BLE001  templates raise jinja2's errors, and their own, for a system's turn
        try:
            return _by_template(tokenizer, [{"role": "user", "content": f"{system}\n\n{user}"}])
        except Exception:  # noqa: BLE001
            raise ValueError(f"its chat template cannot be filled in: {error}") from error


def harmless(text: str, controls: Iterable[str]) -> str:
    """The text with a space inside every control token that it spells out."""
    for control in sorted(set(controls), key=len, reverse=True):
        if len(control) >= _SHORTEST_CONTROL and not control.isspace():
            text = text.replace(control, f"{control[0]} {control[1:]}")
    return text


def _by_template(tokenizer: PreTrainedTokenizerBase, turns: list[dict[str, str]]) -> str:
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert isinstance(text, str)
    return text
