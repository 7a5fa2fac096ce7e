"""Training of the network: labels of windows and labels of traces, together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ...trace.model import BoolArray, FloatArray
from .batches import Batch, Batches
from .dataset import Dataset
from .network import Network, Sizes
from .targets import Targets, kind_weights

EPOCHS = 30
_RATE = 3e-3
_WARM_UP = 0.05
"""Share of the training in which the rate rises."""
_DECAY = 0.02
_KIND_PART = 0.7
"""Weights of the losses beside that of P(bad): the window's kind, and the trace's kinds."""
_TRACE_PART = 0.3
_SMOOTHING = 0.02
_AT_ONCE = 2048
"""Windows of a forward pass when predicting."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the training is."""

    epoch: int
    epochs: int
    loss: float
    """Mean over the epoch."""


def fit_network(
    dataset: Dataset,
    targets: Targets,
    chosen: BoolArray,
    seed: int,
    epochs: int = EPOCHS,
    sizes: Sizes | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> Network:
    """Learn from the chosen windows, shape (W,). The same seed, data and number of threads give the same network."""
    batches = Batches(dataset, chosen, seed)
    with _seeded(seed):
        network = Network(dataset.figures.shape[2], dataset.features.shape[1], len(dataset.kinds), sizes)
        network.overall.learn_usual(dataset.features[chosen].astype(np.float32))
        optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, _rate_over(epochs * len(batches)))
        loss_of = _Loss(dataset, targets, chosen)
        network.train()
        for epoch in range(epochs):
            losses = []
            for batch in batches.epoch():
                loss = loss_of(network, batch)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
            tell(Progress(epoch + 1, epochs, float(np.mean(losses))))
    return network.eval()


def predict(network: Network, dataset: Dataset, windows: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """P(bad), shape (n,), and P(kind | bad), shape (n, K), of some windows (numbers)."""
    bad, kind = [np.empty(0)], [np.empty((0, len(dataset.kinds)))]
    network.eval()
    with torch.inference_mode():
        for at in range(0, len(windows), _AT_ONCE):
            some = windows[at : at + _AT_ONCE]
            token = torch.from_numpy(dataset.token[some].astype(np.int64))
            figures = torch.from_numpy(dataset.figures[some].astype(np.float32))
            features = torch.from_numpy(dataset.features[some].astype(np.float32))
            said = network(token, figures, features)
            bad.append(said[0].squeeze(1).double().numpy())
            kind.append(said[1].double().numpy())
    return np.concatenate(bad), np.concatenate(kind)


class _Loss:
    """The joint loss of a batch."""

    def __init__(self, dataset: Dataset, targets: Targets, chosen: BoolArray) -> None:
        self._targets = targets
        self._injected = dataset.injected
        learned = targets.take(chosen & targets.is_labelled)
        self._kind_weights = torch.from_numpy(kind_weights(learned)).float()
        share = float((learned.bad * learned.weight).sum() / max(len(learned.bad), 1))
        self._bad_weight = math.sqrt((1 - share) / share) if 0 < share < 1 else 1.0
        """The root of the classes' ratio: bad windows are the rarer ones."""

    def __call__(self, network: Network, batch: Batch) -> Tensor:
        inputs = (torch.from_numpy(batch.token), torch.from_numpy(batch.figures), torch.from_numpy(batch.features))
        vectors = network.window_vectors(*inputs)
        return (
            self._of_bad(network.bad(vectors).squeeze(1), batch)
            + _KIND_PART * self._of_kind(network.kind(vectors), batch)
            + _TRACE_PART * self._of_traces(network, vectors, batch)
        )

    def _of_bad(self, logits: Tensor, batch: Batch) -> Tensor:
        targets, windows = self._targets, batch.windows
        bad = torch.from_numpy(targets.bad[windows]).float()
        weight = torch.from_numpy(targets.weight[windows] * targets.is_labelled[windows]).float()
        each = functional.binary_cross_entropy_with_logits(logits, bad, reduction="none")
        weight = weight * (1.0 + bad * (self._bad_weight - 1.0))
        return (each * weight).sum() / weight.sum().clamp(min=1.0)

    def _of_kind(self, logits: Tensor, batch: Batch) -> Tensor:
        kind = torch.from_numpy(self._targets.kind[batch.windows]).float()
        kind = kind * torch.from_numpy(self._targets.weight[batch.windows]).float().unsqueeze(1) * self._kind_weights
        said = functional.log_softmax(logits, dim=1)
        smooth = (1 - _SMOOTHING) * said + _SMOOTHING * said.mean(dim=1, keepdim=True)
        return -(kind * smooth).sum() / kind.sum().clamp(min=1.0)

    def _of_traces(self, network: Network, vectors: Tensor, batch: Batch) -> Tensor:
        """Of what was injected into each trace, and whether anything was."""
        logits = network.trace_logits(vectors, torch.from_numpy(batch.place), len(batch.traces))
        injected = self._injected[batch.traces]
        target = np.concatenate([injected, np.any(injected, axis=1, keepdims=True)], axis=1)
        return functional.binary_cross_entropy_with_logits(
            logits, torch.from_numpy(target).float(), reduction="sum"
        ) / (len(batch.traces) * 4.0)


def _rate_over(batches: int) -> Callable[[int], float]:
    """Share of the rate at each batch: up in a line, then down along a cosine."""
    rising = max(int(batches * _WARM_UP), 1)

    def at(batch: int) -> float:
        if batch < rising:
            return (batch + 1) / rising
        return 0.5 * (1 + math.cos(math.pi * min((batch - rising) / max(batches - rising, 1), 1.0)))

    return at


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Torch's random numbers from `seed` on, and as they were afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
