"""LoRA (Hu et al. 2021) put into a model's upper layers and taken out again as an adapter that peft reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel as Model

if TYPE_CHECKING:
    from peft import PeftModel

WEIGHTS = "adapter_model.safetensors"
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""All matrices of a Llama's layer: attention alone learns worse (QLoRA, Dettmers et al. 2023, section 4)."""
_SCALE = 2.0
"""Alpha over rank."""


def add_lora(model: Model, rank: int, layers: int | None, seed: int) -> PeftModel:
    """The model with fresh LoRA matrices, in bf16, in its `layers` upper layers (None for all); all else is frozen.

    What lies below the lowest of them needs no backward pass.
    """
    from peft import LoraConfig, PeftModel, get_peft_model
    from peft.tuners.lora import LoraLayer

    depth = int(model.config.num_hidden_layers)
    lowest = 0 if layers is None else max(0, depth - layers)
    config = LoraConfig(
        r=rank,
        lora_alpha=round(_SCALE * rank),
        lora_dropout=0.0,
        target_modules=list(TARGETS),
        layers_to_transform=list(range(lowest, depth)),
        layers_pattern="layers",
        task_type="CAUSAL_LM",
    )
    torch.manual_seed(seed)
    with_lora = get_peft_model(model, config, autocast_adapter_dtype=False)
    for _, parameter in learned(with_lora):
        parameter.data = parameter.data.to(torch.bfloat16)
    for module in with_lora.modules():
        if isinstance(module, LoraLayer):
            module.cast_input_dtype_enabled = False
    assert isinstance(with_lora, PeftModel)
    return with_lora


def learned(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The parameters that learn, by name, always in the same order."""
    return ((name, one) for name, one in model.named_parameters() if one.requires_grad)


def save_adapter(model: PeftModel, base: str, folder: Path) -> None:
    """Write adapter_model.safetensors and adapter_config.json. `base` names the model that it belongs to."""
    from peft import get_peft_model_state_dict

    folder.mkdir(parents=True, exist_ok=True)
    # Asked whether embeddings changed, too, peft would look the base up on the hub.
    matrices = get_peft_model_state_dict(model, save_embedding_layers=False)
    state = {name: value.detach().cpu().contiguous() for name, value in matrices.items()}
    unfinished = folder / f"{WEIGHTS}.part"
    save_file(state, unfinished, metadata={"format": "pt"})
    unfinished.replace(folder / WEIGHTS)
    config = model.peft_config["default"]
    config.base_model_name_or_path = base
    config.inference_mode = True
    config.save_pretrained(str(folder))
    config.inference_mode = False
