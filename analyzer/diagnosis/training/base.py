"""The model that an adapter is trained for, as it is while it trains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel as Model
from transformers import PreTrainedTokenizerBase as Tokenizer

from ..backends.base import BackendError
from ..backends.loading import load_model, load_tokenizer, nf4_config
from ..backends.small import NAME, PROMPT_BUDGET, default_cache, load_for_training

SMALL = "small"
LARGE_BUDGET = 2000
"""Tokens that a prompt may have for all others."""
_FILES = ("*.json", "*.safetensors", "*.model", "*.jinja")


@dataclass(frozen=True, slots=True)
class Base:
    """A model whose own weights stay as they are."""

    name: str
    """As people call it, without the folder that it lies in."""
    weights: str
    """What they are, for the card."""
    model: Model
    tokenizer: Tokenizer
    prompt_budget: int


def load_base(wanted: str, cache: Path | None = None) -> Base:
    """`small`, a folder, or a model's name on the hub that has been downloaded before: nothing is fetched here.

    The small one is trained in bf16 on the very weights that its 4 bits stand for: this is several times faster on a
    CPU than unpacking them at every step, and what is learned is the same. All others stay packed as NF4 (QLoRA,
    Dettmers et al. 2023). Raises BackendError.
    """
    if wanted == SMALL:
        model, tokenizer = load_for_training(cache or default_cache())
        return Base(NAME, "bf16, the values of NF4 with double quantisation", model, tokenizer, PROMPT_BUDGET)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        folder = _folder_of(wanted)
        model = load_model(folder, device, nf4_config())
        tokenizer = load_tokenizer(folder)
    except (OSError, ValueError, torch.OutOfMemoryError) as error:
        raise BackendError(f"{wanted} cannot be loaded for training: {error}") from error
    name = folder.name if Path(wanted).is_dir() else wanted
    return Base(name, "NF4 with double quantisation, computing in bf16", model, tokenizer, LARGE_BUDGET)


def _folder_of(wanted: str) -> Path:
    if Path(wanted).is_dir():
        return Path(wanted).resolve()
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(wanted, local_files_only=True, allow_patterns=list(_FILES)))
