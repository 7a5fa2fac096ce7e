"""fp32-without-autocast: everything runs in fp32 on a device with tensor cores."""

from __future__ import annotations

import random

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from torchtraceap.analyzer.timeline.kernel_names import Precision
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import BoolArray

from ..fault import Control, Fault
from ..job import Job, Tensors
from .shared.rows import MATRIX, kernels, no_rows, of_precision, with_operators

SLUG = "fp32-without-autocast"


def apply(job: Job, rng: random.Random) -> bool:
    """No autocast; TF32 stays allowed, where there is such a thing."""
    if job.autocast is None:
        return False
    job.autocast, job.tf32 = None, True
    return True


def spoils(timeline: Timeline) -> BoolArray:
    """Products and convolutions of fp32 numbers, on devices with tensor cores; those that could use TF32 and don't are
    spoiled by that."""
    if timeline.is_cpu_only or not timeline.device.has_tensor_cores:
        return no_rows(timeline)
    wide = (Precision.TF32,) if timeline.device.has_tf32 else (Precision.UNKNOWN, Precision.FP32)
    return with_operators(timeline, of_precision(timeline, kernels(timeline, MATRIX), wide))


def apply_control(job: Job, rng: random.Random) -> bool:
    """Autocast round the model only: the loss stays fp32, as it should."""
    compute_loss = job.compute_loss
    if job.autocast is None or compute_loss is None:
        return False

    def in_fp32(outputs: object, targets: Tensors) -> Tensor:
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            return compute_loss(tree_map_only(Tensor, _widened, outputs), targets)

    job.compute_loss = in_fp32
    return True


def _widened(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor


FAULT = Fault(SLUG, apply, spoils, on=frozenset({"device"}), excludes=frozenset({"tf32-off"}))
CONTROL = Control("autocast with the loss in fp32", apply_control)
