"""What faults look for in models: kinds of layers, and what goes into a part of a running job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ...blocks import ConvNormAct, Mlp, Residual, TransformerBlock
from ...job import Job
from ...surgery import Place, find

ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.GELU, nn.SiLU, nn.Hardswish, nn.LeakyReLU, nn.Sigmoid, nn.Mish)
Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
BLOCKS = (TransformerBlock, Residual, ConvNormAct, Mlp)
"""Parts of several layers that take one tensor and give one of the same rank."""
LAYERS = (nn.Linear, nn.Conv2d, nn.LayerNorm, nn.GroupNorm, nn.BatchNorm2d)


def find_any(model: nn.Module, kinds: Sequence[type[nn.Module]]) -> list[Place[nn.Module]]:
    """All parts of any of these kinds."""
    return find(model, nn.Module, lambda part: isinstance(part, tuple(kinds)))


def has_batch_norm(part: nn.Module) -> bool:
    """Whether samples of a batch depend on each other while it trains."""
    return any(isinstance(inner, _BatchNorm) for inner in part.modules())


def first_inputs(job: Job, parts: Iterable[nn.Module]) -> dict[nn.Module, Tensor]:
    """The first tensor that goes into each part in a forward pass over one batch; parts that don't run are left out."""
    seen: dict[nn.Module, Tensor] = {}

    def note(part: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if inputs and isinstance(inputs[0], Tensor):
            seen.setdefault(part, inputs[0])

    handles = [part.register_forward_pre_hook(note) for part in parts]
    run_once(job)
    for handle in handles:
        handle.remove()
    return seen


def run_once(job: Job) -> object:
    """The model's outputs for the first batch, in evaluation mode, so that nothing in it changes."""
    samples = [job.make_sample(number) for number in range(job.batch_size)]
    count = len(samples[0]) - job.targets
    inputs = tuple(torch.stack([sample[i] for sample in samples]) for i in range(count))
    modes = {part: part.training for part in job.model.modules()}
    job.model.eval()
    with torch.no_grad():
        outputs = job.forward(job.model, inputs)
    for part, is_training in modes.items():
        part.training = is_training
    return outputs
