"""The name under which a model's answers to a dossier are kept."""

from __future__ import annotations

import hashlib

import msgspec

from .diagnose import Options
from .dossier import Dossier
from .prompt import PROMPT_VERSION

_VERSION = 1
"""Counts up when what is kept of an answer changes."""


def fingerprint(dossier: Dossier, model: str, options: Options) -> str:
    """64 hexadecimal digits. Another figure, another line of source, model, prompt or number of samples gives others;
    how long was waited does not."""
    key = (_VERSION, PROMPT_VERSION, model, options.samples, options.with_edit, dossier)
    return hashlib.sha256(msgspec.json.encode(key)).hexdigest()
