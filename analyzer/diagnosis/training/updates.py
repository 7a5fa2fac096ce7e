"""AdamW (Loshchilov and Hutter 2019) for parameters in bf16: it adds up and steps in fp32, where small steps count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .lora import learned

_LARGEST_NORM = 1.0
_WARM_UP = 0.05
_LEAST = 0.02
"""Of the highest rate, at the end."""
_MOMENTS = ("exp_avg", "exp_avg_sq")


def rate_at(progress: float) -> float:
    """The share of the highest learning rate, `progress` (0 to 1) of the way: up in a line, down in a cosine."""
    if progress < _WARM_UP:
        return max(progress / _WARM_UP, _LEAST)
    fallen = min((progress - _WARM_UP) / (1.0 - _WARM_UP), 1.0)
    return _LEAST + (1.0 - _LEAST) * 0.5 * (1.0 + math.cos(math.pi * fallen))


class Updates:
    """Holds an fp32 master of every parameter that learns, and its moments."""

    def __init__(self, model: torch.nn.Module, rate: float) -> None:
        self._rate = rate
        self._parameters = dict(learned(model))
        self._masters = {name: one.detach().float().clone() for name, one in self._parameters.items()}
        for master in self._masters.values():
            master.grad = torch.zeros_like(master)
        fused = all(master.device.type in ("cpu", "cuda") for master in self._masters.values())
        self._optimizer = torch.optim.AdamW(
            self._masters.values(), lr=rate, betas=(0.9, 0.99), weight_decay=0.0, fused=fused
        )

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """Those that learn; gradients are taken in this order."""
        return list(self._parameters.values())

    def add(self, gradients: Sequence[Tensor]) -> None:
        """Add gradients of the parameters to what the next step goes by."""
        for master, gradient in zip(self._masters.values(), gradients, strict=True):
            _gradient(master).add_(gradient)

    def step(self, progress: float) -> None:
        """One update from what was taken, at the rate of `progress`."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate * rate_at(progress)
        torch.nn.utils.clip_grad_norm_(self._masters.values(), _LARGEST_NORM)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=False)
        self._write_back()

    def state(self) -> dict[str, Tensor]:
        """Masters, moments and counts, by names that `restore` knows: between two steps."""
        tensors = {f"master.{name}": master for name, master in self._masters.items()}
        for name, master in self._masters.items():
            for key, value in self._optimizer.state.get(master, {}).items():
                tensors[f"{key}.{name}"] = value
        return tensors

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state. Raises KeyError or ValueError if it is of other parameters."""
        for name, master in self._masters.items():
            saved = state[f"master.{name}"]
            if saved.shape != master.shape:
                raise ValueError(f"{name} has the shape {tuple(master.shape)}, not {tuple(saved.shape)}")
            master.copy_(saved)
            if f"step.{name}" in state:
                moments = {key: state[f"{key}.{name}"].to(master.device).clone() for key in _MOMENTS}
                self._optimizer.state[master] = {"step": state[f"step.{name}"].clone(), **moments}
        self._write_back()

    def _write_back(self) -> None:
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(self._masters[name])


def _gradient(master: Tensor) -> Tensor:
    assert master.grad is not None
    return master.grad
