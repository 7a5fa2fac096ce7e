"""What of a dossier a small model gets to see."""

from __future__ import annotations

import re

from torchtraceap.analyzer.diagnosis.backends.small import PROMPT_BUDGET
from torchtraceap.analyzer.diagnosis.dossier import Dossier
from torchtraceap.analyzer.diagnosis.figures import figures_of
from torchtraceap.analyzer.diagnosis.prompt import write_prompt

_CHARACTERS_EACH = 2.6
"""Characters of a prompt that one token of it stands for, at the least: figures take many."""


def ids_shown(dossier: Dossier, budget: int = PROMPT_BUDGET) -> frozenset[str]:
    """The ids of the figures that a prompt of so many tokens has."""
    text = write_prompt(dossier, guess_tokens, budget).prompt.user
    return frozenset(
        one.id for one in figures_of(dossier) if re.search(rf"(?<![\w-]){re.escape(one.id)}(?![\w-])", text)
    )


def guess_tokens(text: str) -> int:
    """How many tokens a text has, rather more than less, for whoever has no tokenizer at hand."""
    return round(len(text) / _CHARACTERS_EACH)
