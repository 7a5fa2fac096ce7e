"""Marks on what optimizers do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from ...marks import spoiled


def mark_steps(optimizer: torch.optim.Optimizer, slug: str) -> torch.optim.Optimizer:
    """Mark all updates of an optimizer."""
    optimizer.step = marking(optimizer.step, slug)  # pyright: ignore[reportAttributeAccessIssue]
    return optimizer


def marking(method: Callable[..., Any], slug: str) -> Callable[..., Any]:
    """The method, marked."""

    @wraps(method)
    def marked(*args: Any, **kwargs: Any) -> Any:
        with spoiled(slug):
            return method(*args, **kwargs)

    return marked
