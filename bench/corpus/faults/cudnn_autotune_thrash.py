"""cudnn-autotune-thrash: images of a new size in every step, for which cuDNN tries all its kernels again."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from itertools import cycle

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import default_collate

from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import NONE, BoolArray

from ..fault import Fault
from ..job import Job, Tensors
from .cudnn_autotune_off import has_convolutions
from .shared.rows import MATRIX, kernels, no_rows
from .shared.transfers import is_image

SLUG = "cudnn-autotune-thrash"
_SCALES = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75)
_LEAST_CONVOLUTIONS = 3
_LEAST_TRIED = 4
"""Matrix kernels of one operator, from which they are trials."""
_REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, AssertionError)


def apply(job: Job, rng: random.Random) -> bool:
    """Multi-scale training or inference with `cudnn.benchmark`, of models that take images of any size: another one in
    each recorded step. Tells the simulator so."""
    scales = rng.sample(_SCALES, len(_SCALES))
    if not has_convolutions(job.model, _LEAST_CONVOLUTIONS) or not _takes_any_size(job, scales):
        return False
    forward, turns = job.forward, cycle(scales)

    def in_another_size(model: nn.Module, inputs: Tensors) -> object:
        scale = next(turns)
        return forward(model, tuple(_scaled(tensor, scale) for tensor in inputs))

    job.forward, job.cudnn_benchmark = in_another_size, True
    job.settings[SLUG] = "sizes vary"
    return True


def _scaled(tensor: Tensor, scale: float) -> Tensor:
    if not is_image(tensor) or tensor.dim() != 4:
        return tensor
    size = [max(int(side * scale) // 16 * 16, 16) for side in tensor.shape[-2:]]
    return F.interpolate(tensor.float(), size, mode="bilinear", align_corners=False)


def _takes_any_size(job: Job, scales: Sequence[float]) -> bool:
    """Whether a copy of the model, and its loss, bear two samples of each size."""
    batch = default_collate([job.make_sample(number) for number in range(2)])
    inputs, targets = tuple(batch[: len(batch) - job.targets]), tuple(batch[len(batch) - job.targets :])
    if not any(is_image(tensor) and tensor.dim() == 4 for tensor in inputs):
        return False
    model = copy.deepcopy(job.model)
    try:
        with torch.no_grad():
            for scale in scales:
                outputs = job.forward(model, tuple(_scaled(tensor, scale) for tensor in inputs))
                if job.compute_loss is not None:
                    job.compute_loss(outputs, targets)
                elif job.postprocess is not None:
                    job.postprocess(outputs)
    except _REFUSALS:
        return False
    return True


def spoils(timeline: Timeline) -> BoolArray:
    """Operators that launched many matrix kernels each, and what they launched."""
    rows = kernels(timeline, MATRIX)
    operator = timeline.launches.op[rows]
    launched = np.bincount(operator[operator != NONE], minlength=len(timeline.trace))
    found = no_rows(timeline)
    found[launched >= _LEAST_TRIED] = True
    found[rows[(operator != NONE) & found[operator]]] = True
    return found


FAULT = Fault(SLUG, apply, spoils, on=frozenset({"device"}), excludes=frozenset({"cudnn-autotune-off"}))
