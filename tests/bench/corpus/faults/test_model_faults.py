"""Faults inside of models: they find room, do the same as before but worse, and mark what is worse."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile
from torch.utils._pytree import tree_leaves

from bench.corpus.cleaning import take_out, without_overhead
from bench.corpus.fault import Control, all_controls, all_faults
from bench.corpus.faults.shared.parts import run_once
from bench.corpus.job import Job
from bench.corpus.marks import SPOILED
from bench.corpus.running import record
from bench.corpus.simulator import simulate
from tests.bench.corpus.faults.model_jobs import JOBS, bare, clips, convolutions, detector, plain_convolutions
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.read import read_trace

SHOWN: dict[str, tuple[str, ...]] = {
    "attention-weights-unused": ("aten::softmax",),
    "batchnorm-not-folded": ("aten::batch_norm",),
    "cast-thrash": ("aten::_to_copy",),
    "constant-recomputed": ("aten::arange", "aten::linspace", "aten::cumsum"),
    "copies-around-attention": ("aten::clone",),
    "fallback-kernel": ("aten::thnn_conv2d", "aten::_slow_conv2d_forward", "aten::slow_conv_dilated2d"),
    "handwritten-norm-or-activation": (
        "aten::sqrt",
        "aten::rsqrt",
        "aten::erf",
        "aten::tanh",
        "aten::sigmoid",
        "aten::clamp",
    ),
    "layout-broken-midway": ("aten::contiguous", "aten::reshape"),
    "masked-window-as-full": ("aten::scaled_dot_product_attention",),
    "matcher-full-cost-matrix": ("aten::cdist",),
    "misaligned-gemm": ("aten::linear",),
    "nms-per-class": ("torchvision::nms",),
    "padding-waste": ("aten::scaled_dot_product_attention",),
    "patchify-conv": ("aten::conv3d",),
    "per-image-postprocess-loop": ("aten::item", "aten::_local_scalar_dense", "aten::index"),
    "permute-contiguous-churn": ("aten::permute",),
    "pointwise-chain": ("aten::mul",),
    "python-loop-over-batch": ("aten::slice", "aten::select"),
    "qkv-recomputed": ("aten::linear",),
    "redundant-copy": ("aten::clone",),
    "relative-bias-recomputed": ("aten::index",),
    "sampling-point-copies": ("aten::clone",),
    "sdpa-math-fallback": ("aten::_scaled_dot_product_attention_math",),
    "slow-grouped-conv": ("aten::conv2d",),
    "slow-operator-choice": ("aten::einsum",),
    "split-qkv": ("aten::linear",),
    "unfused-attention": ("aten::softmax",),
}
"""Of each fault that marks its work, operators of which one at least shows it."""
SPOILS = {
    "channels-last-missing": (convolutions, "aten::conv2d"),
    "volumetric-layout": (clips, "aten::conv3d"),
    "conv-bias-before-norm": (convolutions, "aten::add_"),
    "inplace-activation-clones": (convolutions, "aten::clone"),
    "attention-weights-unused": (detector, "aten::softmax"),
    "slow-operator-choice": (plain_convolutions, "aten::clone"),
}
"""Of faults that say by `spoils` what they spoil, a job with room for them, and an operator that is spoiled."""
SPOILS_SEED = 1
SETTINGS = ("channels-last-missing", "volumetric-layout", "conv-bias-before-norm", "inplace-activation-clones")
"""Faults that say by `spoils` what they spoil."""
CHANGES_RESULTS = {
    *("constant-recomputed", "slow-grouped-conv", "slow-operator-choice", "inplace-activation-clones"),
    *("handwritten-norm-or-activation", "masked-window-as-full"),
}
"""Faults that exchange a part for another one, or add one."""
FAULTS = sorted({*SHOWN, *SETTINGS})
CONTROLS = [
    control for control in all_controls() if control.apply.__module__.rsplit(".", 1)[-1].replace("_", "-") in FAULTS
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def spoiled_jobs(slug: str, seeds: int = 4) -> Iterator[Job]:
    """Jobs that have room for a fault, with it: for each seed one."""
    fault = all_faults()[slug]
    for seed in range(seeds):
        jobs = (seeded(make, training=bool(seed % 2)) for make in (*JOBS[seed % 5 :], *JOBS[: seed % 5]))
        yield from islice((job for job in jobs if fault.apply(job, random.Random(seed))), 1)


def seeded(make: Callable[[bool], Job], training: bool) -> Job:
    torch.manual_seed(3)
    return make(training)


def step(job: Job) -> object:
    """One step without an optimizer, under autocast, as it would run."""
    samples = [job.make_sample(number) for number in range(job.batch_size)]
    tensors = tuple(map(torch.stack, zip(*samples, strict=True)))
    if job.channels_last and tensors[0].dim() == 4:
        job.model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        tensors = (tensors[0].contiguous(memory_format=torch.channels_last), *tensors[1:])
    inputs, targets = tensors[: len(tensors) - job.targets], tensors[len(tensors) - job.targets :]
    cast = torch.autocast("cpu", job.autocast) if job.autocast else nullcontext()
    with nullcontext() if job.is_training else torch.inference_mode():
        with cast:
            outputs = job.forward(job.model, inputs)
            loss = job.compute_loss(outputs, targets) if job.compute_loss else None
        if loss is not None:
            loss.backward()
        return job.postprocess(outputs) if job.postprocess else outputs


def recorded(job: Job) -> list[FunctionEvent]:
    with profile(activities=[ProfilerActivity.CPU]) as recording:
        step(job)
    return list(recording.events() or ())


def marked(events: list[FunctionEvent], slug: str) -> set[str]:
    """Names of operators inside of a fault's marks."""

    def lies_within(event: FunctionEvent) -> bool:
        parent = event.cpu_parent
        return parent is not None and (parent.name == SPOILED + slug or lies_within(parent))

    return {event.name for event in events if lies_within(event)}


@pytest.mark.parametrize("slug", sorted(SHOWN))
def test_work_is_marked_and_shows_what_it_should(slug: str) -> None:
    shown = [marked(recorded(job), slug) for job in spoiled_jobs(slug)]
    # A model's own `nn.MultiheadAttention` is asked for its weights, which marks nothing.
    shown = [names for names in shown if names or slug != "attention-weights-unused"]
    assert shown
    assert all(names & set(SHOWN[slug]) for names in shown if slug != "slow-operator-choice" or names)


@pytest.mark.parametrize("slug", FAULTS)
def test_results_stay_and_models_still_train(slug: str) -> None:
    fault, applied = all_faults()[slug], 0
    for seed in range(2):
        for make in JOBS:
            job = seeded(make, training=bool(seed % 2))
            before = run_once(job)
            if not fault.apply(job, random.Random(seed)):
                continue
            applied += 1
            after = run_once(job)
            if slug not in CHANGES_RESULTS:
                for old, new in zip(tree_leaves(before), tree_leaves(after), strict=True):
                    torch.testing.assert_close(new, old, rtol=2e-2, atol=2e-2)
            step(job)
            if job.is_training:
                # torch 2.13's oneDNN leaves some of a volume's weight gradient in half precision unset now and then.
                parameters = [parameter for parameter in job.model.parameters() if parameter.dim() != 5]
                gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
                assert gradients and all(gradient.isfinite().all() for gradient in gradients)
    assert applied


@pytest.mark.parametrize("slug", FAULTS)
def test_nothing_changes_where_there_is_no_room(slug: str) -> None:
    for training in (False, True):
        job = bare(training)
        before = replace(job, settings=dict(job.settings), hooks=dict(job.hooks))
        assert not all_faults()[slug].apply(job, random.Random(0))
        assert all(getattr(job, one.name) == getattr(before, one.name) for one in fields(Job))
        assert "forward" not in vars(job.model) and len(list(job.model.modules())) == 1


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_controls_apply_mark_nothing_and_train(control: Control) -> None:
    applied = 0
    for seed in range(2):
        for make in JOBS:
            job = seeded(make, training=bool(seed % 2))
            if control.apply(job, random.Random(seed)):
                applied += 1
                assert not any(event.name.startswith(SPOILED) for event in recorded(job))
    assert applied


@pytest.mark.parametrize("slug", sorted(SPOILS))
def test_what_settings_spoil_is_found_in_recordings(slug: str, tmp_path: Path) -> None:
    make, name = SPOILS[slug]
    fault, healthy, job = all_faults()[slug], seeded(make, training=True), seeded(make, training=True)
    assert fault.apply(job, random.Random(SPOILS_SEED))
    assert fault.spoils is not None
    timeline = timeline_of(job, tmp_path, is_simulated="cpu" not in fault.on)
    spoiled = fault.spoils(timeline)
    assert name in {timeline.trace.name_of(row) for row in np.flatnonzero(spoiled).tolist()}
    assert spoiled.sum() < 0.6 * len(spoiled)
    if slug not in ("channels-last-missing", "volumetric-layout"):
        # These two are what convolutions are like once the setting is wrong.
        assert not fault.spoils(timeline_of(healthy, tmp_path, is_simulated="cpu" not in fault.on)).any()


def timeline_of(job: Job, folder: Path, *, is_simulated: bool) -> Timeline:
    document = without_overhead(record(job, steps=2, warm_up=1))
    document = simulate(document, "A100", job, 1) if is_simulated else document
    (folder / "run.json").write_bytes(take_out(document, job.family, moves_nothing=not is_simulated).document)
    return build_timeline(read_trace(folder / "run.json"))
