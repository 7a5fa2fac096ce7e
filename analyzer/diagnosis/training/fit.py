"""The training itself: pairs one by one, each without padding, and an update after every few.

On a CPU, every core has a pair to itself: cores that share each operation wait for one another many thousand times a
pair, and for long where another program has one of them. Gradients are added up in the order of the pairs, so that the
number of cores does not change what is learned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor
from torch.nn import functional

from .checkpoint import Point, Progress
from .examples import Example
from .updates import Updates


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, and in what steps."""

    seed: int
    epochs: int
    batch: int
    """Pairs per update."""
    threads: int
    """Pairs at once: one for each core; one on a GPU."""
    most_seconds: float | None
    """Of training, resumed parts counted; the learning rate falls towards that, too."""


def pair_order(count: int, plan: Plan) -> list[int]:
    """Which pair is when: every epoch all, in an order of its own."""
    return [
        place for epoch in range(plan.epochs) for place in Random(f"{plan.seed}:{epoch}").sample(range(count), count)
    ]


def fit(
    model: torch.nn.Module,
    updates: Updates,
    example_of: Callable[[int, int], Example],
    count: int,
    plan: Plan,
    progress: Progress,
    after: Callable[[Progress], None],
) -> Progress:
    """Learn from `count` examples on from `progress`; `after` is told of every update.

    `example_of` makes the example of a pair, by its place, for the nth time that it is learned from.
    """
    order = pair_order(count, plan)
    model.train()
    began = time.monotonic() - progress.seconds
    with ThreadPoolExecutor(plan.threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for first in range(progress.updates * plan.batch, len(order), plan.batch):
            seconds = time.monotonic() - began
            if plan.most_seconds is not None and seconds >= plan.most_seconds:
                break
            places = order[first : first + plan.batch]
            examples = [example_of(place, (first + nth) // count) for nth, place in enumerate(places)]
            loss = _learn(model, updates, examples, pool)
            done = (first + len(places)) / len(order)
            updates.step(max(done, seconds / plan.most_seconds) if plan.most_seconds else done)
            progress = _further(progress, examples, loss, time.monotonic() - began)
            after(progress)
    return progress


def answer_loss(model: torch.nn.Module, example: Example) -> Tensor:
    """The weighted mean of -log P over the answer's tokens, given all before; a scalar in fp32."""
    device = next(model.parameters()).device
    ids = torch.tensor([(*example.prompt, *example.answer)], device=device)
    first = len(example.prompt) - 1
    # The head is the dearest layer of a small model: it is asked where a token of the answer comes next only.
    places = torch.arange(first, ids.shape[1] - 1, device=device)
    logits = model(input_ids=ids, logits_to_keep=places, use_cache=False).logits[0].float()
    losses = functional.cross_entropy(logits, ids[0, first + 1 :], reduction="none")
    weights = torch.tensor(example.weights, device=device)
    return (losses * weights).sum() / weights.sum()


def _learn(model: torch.nn.Module, updates: Updates, examples: Sequence[Example], pool: Executor) -> float:
    """Gradients of the examples' mean loss, and that loss."""

    def gradients_of(example: Example) -> tuple[float, tuple[Tensor, ...]]:
        loss = answer_loss(model, example) / len(examples)
        return loss.item(), torch.autograd.grad(loss, updates.parameters)

    total = 0.0
    for loss, gradients in pool.map(gradients_of, examples):
        updates.add(gradients)
        total += loss
    return total


def _further(progress: Progress, examples: Sequence[Example], loss: float, seconds: float) -> Progress:
    last = progress.curve[-1] if progress.curve else Point(0, 0, 0, 0.0, 0.0)
    tokens = sum(len(example.prompt) + len(example.answer) for example in examples)
    point = Point(last.update + 1, last.pairs + len(examples), last.tokens + tokens, round(seconds, 1), round(loss, 5))
    return Progress(progress.task, seconds, (*progress.curve, point))
