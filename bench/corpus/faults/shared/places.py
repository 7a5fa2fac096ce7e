"""Where faults put their work: into hooks, round layers, into the loss or what follows the model."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from ... import surgery
from ...job import Hook, Job, Moment, Step
from ...marks import healthy, spoiled

Change = Callable[[Tensor], Tensor]


def tensors(value: object) -> list[Tensor]:
    """All tensors of a nest of lists, tuples and dicts."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def largest(value: object) -> Tensor:
    """The largest floating-point tensor of a nest. Raises ValueError if it has none."""
    return max((tensor for tensor in tensors(value) if tensor.is_floating_point()), key=Tensor.numel)


def by_sample(value: object, samples: int) -> Tensor:
    """The largest floating-point tensor of a nest as a matrix of one row for each sample; one row for all where it is
    not made of that many."""
    found = largest(value)
    is_batch = found.dim() > 0 and found.shape[0] == samples
    return found.flatten(1) if is_batch and found.dim() > 1 else found.reshape(samples if is_batch else 1, -1)


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that an optimizer is given."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def at(job: Job, moment: Moment, slug: str, run: Hook) -> None:
    """Run something at a moment of every step, marked."""

    def run_marked(step: Step) -> None:
        with spoiled(slug):
            run(step)

    job.hook(moment, run_marked)


def after_model(job: Job, slug: str, run: Callable[[object], Tensor | None]) -> None:
    """Run something on the model's outputs: in the loss, to which the tensor it gives is added, or, at inference,
    before what is made of them. No slug: unmarked."""
    compute_loss, postprocess = job.compute_loss, job.postprocess

    def with_loss(outputs: object, targets: Any) -> Tensor:
        with marked(slug):
            added = run(outputs)
        loss = compute_loss(outputs, targets) if compute_loss else largest(outputs).mean()
        return loss if added is None else loss + added

    def with_postprocess(outputs: object) -> object:
        with marked(slug):
            run(outputs)
        return postprocess(outputs) if postprocess else outputs

    if job.is_training:
        job.compute_loss = with_loss
    else:
        job.postprocess = with_postprocess


def layers(job: Job) -> list[surgery.Place[nn.Module]]:
    """Parts that a fault may be put round: the model's own blocks; of a model without blocks, layers with weights."""
    blocks = surgery.find(job.model, nn.Module, lambda part: not _is_of_torch(part))
    return blocks if len(blocks) > 1 else surgery.find(job.model, nn.Module, _has_weights)


def after_layers(job: Job, rng: random.Random, slug: str, change: Change, least: float = 0.2) -> bool:
    """Pass what some layers give (single floating-point tensors) through a change; False where there are none. No slug:
    unmarked, as controls are."""
    chosen = surgery.choose(layers(job), rng, least)

    def changed(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        output = original(*args, **kwargs)
        if not isinstance(output, Tensor) or not output.is_floating_point():
            return output
        with marked(slug):
            return change(output)

    for place in chosen:
        surgery.wrap_forward(place.part, changed)
    return bool(chosen)


def on_inputs(job: Job, slug: str, change: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]) -> None:
    """Pass the model's inputs through a change, on the device."""
    forward = job.forward

    def changed(model: nn.Module, inputs: tuple[Tensor, ...]) -> object:
        with spoiled(slug):
            inputs = change(inputs)
        return forward(model, inputs)

    job.forward = changed


def marked(slug: str) -> AbstractContextManager[object]:
    """Whose work it is; nobody's, if there is no slug."""
    return spoiled(slug) if slug else healthy()


def _is_of_torch(part: nn.Module) -> bool:
    return type(part).__module__.startswith("torch.")


def _has_weights(part: nn.Module) -> bool:
    return _is_of_torch(part) and any(True for _ in part.parameters(recurse=False))
