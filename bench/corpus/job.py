"""A program that the corpus runs and records: a model with its data, its loop and its settings.

A family makes a healthy job; faults change it; `running.py` runs it. Everything a fault may want to change is a field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

import torch
from torch import Tensor, nn

Tensors = tuple[Tensor, ...]


class Moment(Enum):
    """When in a step a hook runs."""

    BEFORE_FORWARD = "before forward"
    AFTER_FORWARD = "after forward"
    AFTER_BACKWARD = "after backward"
    AFTER_OPTIMIZER = "after optimizer"
    END = "end of step"


@dataclass
class Step:
    """What hooks see of the running step."""

    number: int
    device: torch.device
    job: Job
    inputs: Tensors = ()
    targets: Tensors = ()
    outputs: object = None
    loss: Tensor | None = None


Hook = Callable[[Step], None]


@dataclass
class Loading:
    """How batches come: from memory, or by a DataLoader whose samples cost work."""

    from_memory: bool = True
    workers: int = 0
    make_sample: Callable[[int], Tensors] | None = None
    """Overrides the family's sample, e.g. to make it expensive."""
    slug: str = ""
    """The fault that waiting for a batch shows; "" if it is healthy."""


@dataclass
class Transfer:
    """How a batch moves to the device."""

    pinned: bool = True
    blocking: bool = False
    prepare: Callable[[Tensors], Tensors] | None = None
    """Run on the host before the move, e.g. conversion to float."""
    slug: str = ""


@dataclass
class Job:
    """One program. Families fill the first part; the defaults are what careful people write."""

    family: str
    model: nn.Module
    is_training: bool
    make_sample: Callable[[int], Tensors]
    """Sample number -> tensors without the batch axis: inputs first, then `targets` targets."""
    targets: int
    batch_size: int
    """Real batch; a prime number from 5 on, so that the simulator can tell the batch axis and multiply it."""
    compute_loss: Callable[[object, Tensors], Tensor] | None = None
    """From the model's outputs and the targets. None for inference."""
    postprocess: Callable[[object], object] | None = None
    """Inference: what is made of the outputs, inside the step."""
    loading: Loading = field(default_factory=Loading)
    transfer: Transfer = field(default_factory=Transfer)
    make_optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] = field(
        default=lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, foreach=True)
    )
    autocast: torch.dtype | None = torch.bfloat16
    """None: fp32 throughout."""
    tf32: bool = True
    """A device with TF32 may use it. Only the simulator and real devices know the difference."""
    channels_last: bool = True
    """Convolution models on a device run in channels last; the model and inputs are converted before."""
    cudnn_benchmark: bool = True
    forward: Callable[[nn.Module, Tensors], object] = field(default=lambda model, inputs: model(*inputs))
    hooks: dict[Moment, list[Hook]] = field(default_factory=dict)
    accumulate: int = 1
    """Micro-batches per optimizer step."""
    zero_to_none: bool = True
    no_grad: bool = True
    """Inference runs under `inference_mode`."""
    ranks: int = 1
    """More than one: gradients are reduced over so many devices (DDP; simulated)."""
    bucket_bytes: int = 25 << 20
    batch_multiplier: int = 16
    """By how much the simulator multiplies the batch axis, so that devices have as much to do as in real jobs."""
    settings: dict[str, str] = field(default_factory=dict)
    """Whatever else a fault tells the simulator, by slug."""

    def hook(self, moment: Moment, run: Hook) -> None:
        """Run something at a moment of every step."""
        self.hooks.setdefault(moment, []).append(run)
