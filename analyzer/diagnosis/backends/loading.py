"""Loading a model's weights: 4 bits (NF4) or bf16, from safetensors on this machine, and no code that comes with them.

What is particular about bitsandbytes on a CPU: the first forward pass repacks the weights in place, so whoever wants to
save or dequantise them does it before; and layers whose sides are no multiples of 64 in and 32 out cannot be run there.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
from transformers import PreTrainedModel as Model
from transformers import PreTrainedTokenizerBase as Tokenizer


def hush() -> None:
    """Keep bars and remarks of the libraries off stderr, where the daemon's log and people's terminals are.

    One of them is no news: bitsandbytes says at every start that it found no kernels to download.
    """
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    warnings.filterwarnings("ignore", module=r"(transformers|bitsandbytes|peft)\b")


def nf4_config(unquantised: Sequence[str] = ()) -> BitsAndBytesConfig:
    """4-bit NormalFloat with double quantisation, computing in bf16 (QLoRA, Dettmers et al. 2023).

    The head stays as it is, and so do the modules named.
    """
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
        llm_int8_skip_modules=["lm_head", *unquantised],
    )


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer that lies in a folder. Raises OSError or ValueError where there is none to be had."""
    return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def load_model(folder: Path, device: str, quantisation: BitsAndBytesConfig | None) -> Model:
    """The model in a folder, for answering. One that was saved quantised is loaded as it is, given None.

    Raises OSError or ValueError where the folder holds none that can be loaded, torch.OutOfMemoryError on a device.
    """
    hush()
    # None must not be given as such: it would replace what the folder's own configuration says.
    how = {} if quantisation is None else {"quantization_config": quantisation}
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        dtype=torch.bfloat16,
        device_map={"": device},
        use_safetensors=True,
        local_files_only=True,
        trust_remote_code=False,
        **how,
    )
    return model.eval()


def load_adapter(model: Model, folder: Path) -> Model:
    """The model with a LoRA adapter of peft's put into its layers. Raises OSError or ValueError if it does not fit."""
    from peft import PeftModel

    if not (folder / "adapter_model.safetensors").is_file():
        raise FileNotFoundError(f"no adapter_model.safetensors in {folder}")
    with_adapter = PeftModel.from_pretrained(model, folder, is_trainable=False, autocast_adapter_dtype=False)
    return with_adapter.to(dtype=torch.bfloat16).get_base_model().eval()  # pyright: ignore[reportReturnType]


def dequantised(model: Model) -> Model:
    """The same model in bf16 with the very weights that its 4 bits stand for. Before its first forward pass only."""
    model.dequantize()
    return model.to(dtype=torch.bfloat16)  # pyright: ignore[reportCallIssue]
