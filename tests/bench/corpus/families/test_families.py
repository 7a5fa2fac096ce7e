"""Every family runs, learns, and lets the batch axis be told by its size."""

import random

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.data import default_collate

from bench.corpus.family import all_families
from bench.corpus.making import BATCH_SIZES

FAMILIES = sorted(all_families())
SMALL = 3
"""Samples of a batch here; the jobs' own are larger."""


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made(name, training, seed=0):
    torch.manual_seed(seed)
    return all_families()[name].make(random.Random(seed), training)


def batch_of(job, size):
    batch = default_collate([job.make_sample(number) for number in range(size)])
    inputs = len(batch) - job.targets
    return tuple(batch[:inputs]), tuple(batch[inputs:])


def forward(job, batch):
    """The loss, or what inference makes of the outputs, as `running.py` does it."""
    inputs, targets = batch
    if job.is_training:
        with torch.autocast("cpu", job.autocast):
            return job.compute_loss(job.forward(job.model, inputs), targets)
    with torch.inference_mode():
        with torch.autocast("cpu", job.autocast):
            outputs = job.forward(job.model, inputs)
        return outputs if job.postprocess is None else job.postprocess(outputs)


def test_there_are_families_of_every_task():
    assert len(FAMILIES) >= 26
    tasks = {family.task for family in all_families().values()}
    assert tasks >= {"classification", "detection", "segmentation", "generation", "pose", "depth", "video"}


@pytest.mark.parametrize("name", FAMILIES)
def test_training_gives_a_finite_loss_and_every_parameter_a_gradient(name):
    job = made(name, training=True)
    assert job.family == name
    assert job.model.training
    assert job.batch_size in BATCH_SIZES
    loss = forward(job, batch_of(job, SMALL))
    assert loss.shape == ()
    assert loss.isfinite()
    loss.backward()
    learning = {name: parameter for name, parameter in job.model.named_parameters() if parameter.requires_grad}
    assert not [name for name, parameter in learning.items() if parameter.grad is None]
    assert all(parameter.grad.isfinite().all() for parameter in learning.values())
    job.make_optimizer(job.model.parameters()).step()


@pytest.mark.parametrize("name", FAMILIES)
def test_inference_gives_finite_results_and_needs_no_targets(name):
    job = made(name, training=False)
    assert not job.model.training
    assert job.targets == 0
    assert job.compute_loss is None
    results = [leaf for leaf in tree_leaves(forward(job, batch_of(job, SMALL))) if torch.is_tensor(leaf)]
    assert results
    assert all(result.isfinite().all() for result in results)


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_and_sizes_follow_from_the_seed_alone(name):
    first, second = (made(name, training=True, seed=3) for _ in range(2))
    assert first.batch_size == second.batch_size
    assert [p.shape for p in first.model.parameters()] == [p.shape for p in second.model.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(first.make_sample(5), second.make_sample(5), strict=True))


class LeadingSizes(TorchDispatchMode):
    """The first size of every tensor that operators take and give; but for boxes that stay, whose count is chance."""

    def __init__(self):
        super().__init__()
        self.found = set()
        self.kept = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if "nms" in str(func):
            self.kept.add(len(result))
        leaves = [leaf for leaf in tree_leaves((args, kwargs, result)) if torch.is_tensor(leaf) and leaf.dim()]
        self.found |= {(str(func), leaf.shape[0]) for leaf in leaves if leaf.shape[0] not in self.kept}
        return result


def leading_sizes(job, batch_size):
    with LeadingSizes() as sizes:
        result = forward(job, batch_of(job, batch_size))
        if job.is_training:
            result.backward()
    return sizes.found


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", FAMILIES)
def test_only_the_batch_axis_is_a_multiple_of_the_batch_size(name, training):
    """What leads with the same size in batches of two and of three is no multiple of the real batch size."""
    job = made(name, training, seed=1)
    found = leading_sizes(job, 2) & leading_sizes(job, SMALL)
    assert not [(operator, size) for operator, size in found if size and size % job.batch_size == 0]
