"""debug-mode-left-on: anomaly detection, deterministic filling or assertions of every layer, left from a search."""

from __future__ import annotations

import random
import re

import numpy as np
import torch
from torch import Tensor

from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import NONE, BoolArray

from ..fault import Fault
from ..job import Job, Moment, Step
from .shared.places import after_layers
from .shared.rows import named

SLUG = "debug-mode-left-on"
_NODE = re.compile(r"^autograd::engine::evaluate_function: ")
_CHECKS = frozenset(("aten::isnan", "aten::_is_any_true", "aten::item"))
_FILLED = re.compile(r"^aten::(empty|resize_|new_empty)")


def apply(job: Job, rng: random.Random) -> bool:
    """Anomaly detection round the backward pass, assertions that layers' outputs are finite, or new memory
    filled with NaN."""
    styles = ["assert", "fill"]
    if job.is_training:
        styles += ["anomaly", "anomaly"]
    style = rng.choice(styles)
    if style == "anomaly":
        job.hook(Moment.AFTER_FORWARD, _detect_anomalies)
        job.hook(Moment.AFTER_BACKWARD, _detect_none)
    elif style == "fill":
        job.hook(Moment.BEFORE_FORWARD, _fill)
        job.hook(Moment.END, lambda step: torch.use_deterministic_algorithms(False))
    else:
        return after_layers(job, rng, SLUG, _assert_finite, least=0.4)
    return True


def _detect_anomalies(step: Step) -> None:
    torch.autograd.set_detect_anomaly(True, check_nan=True)


def _detect_none(step: Step) -> None:
    torch.autograd.set_detect_anomaly(False)


def _fill(step: Step) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)


def _assert_finite(output: Tensor) -> Tensor:
    if torch.isnan(output).any() or torch.isinf(output).any():
        raise FloatingPointError("a layer gives numbers that are not finite")
    return output


def spoils(timeline: Timeline) -> BoolArray:
    """Checks by the autograd engine itself, directly in its nodes, and fills of new memory."""
    parent = timeline.tree.parent
    is_node, is_new = named(timeline, _NODE.search), named(timeline, _FILLED.search)
    checks = named(timeline, _CHECKS.__contains__) & np.where(parent != NONE, is_node[parent], False)
    fills = named(timeline, lambda name: name == "aten::fill_") & np.where(parent != NONE, is_new[parent], False)
    return checks | fills


FAULT = Fault(SLUG, apply, spoils)
