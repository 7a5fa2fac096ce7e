"""Runs a job as careful people would, and records it with torch.profiler."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import cycle
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset, default_collate

from . import marks
from .job import Job, Moment, Step, Tensors
from .reduction import Reduction

STEPS = 3
WARM_UP = 2
IN_MEMORY = 2
"""Batches made beforehand, used in turns."""
_CPU = torch.device("cpu")


def record(job: Job, device: torch.device = _CPU, steps: int = STEPS, warm_up: int = WARM_UP) -> bytes:
    """Run the job on the device, on one thread of the CPU, and record `steps` steps after `warm_up` others.

    Returns the document that torch.profiler exports, with stacks, shapes and memory, and with the ranges of `marks`.
    Whatever the job raises comes through.
    """
    with _settings_restored():
        # Under autocast devices do not take nn.MultiheadAttention's unfused path for inference; the CPU alone would.
        torch.backends.mha.set_fastpath_enabled(False)
        torch.set_num_threads(1)
        return _recorded(job, device, steps, warm_up)


@contextmanager
def _settings_restored() -> Iterator[None]:
    """What jobs and faults set for the whole process is as before afterwards, also where a job raises."""
    threads, fast_path = torch.get_num_threads(), torch.backends.mha.get_fastpath_enabled()
    benchmark = torch.backends.cudnn.benchmark
    tf32 = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    anomaly, checks_nan = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.mha.set_fastpath_enabled(fast_path)
        torch.backends.cudnn.benchmark = benchmark
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.autograd.set_detect_anomaly(anomaly, checks_nan)
        torch.use_deterministic_algorithms(deterministic, warn_only=warns)


def _recorded(job: Job, device: torch.device, steps: int, warm_up: int) -> bytes:
    program = _Program(job, device, (steps + warm_up) * job.accumulate)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    plan = schedule(wait=0, warmup=warm_up, active=steps, repeat=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        with profile(
            activities=activities,
            schedule=plan,
            on_trace_ready=lambda finished: finished.export_chrome_trace(str(path)),
            record_shapes=True,
            profile_memory=True,
            with_stack=True,
        ) as recording:
            for number in range(steps + warm_up):
                program.run_step(number)
                recording.step()
        return path.read_bytes()


class _Samples(Dataset):
    """The job's samples, as a map-style data set."""

    def __init__(self, job: Job, count: int) -> None:
        self.make_sample = job.loading.make_sample or job.make_sample
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Tensors:
        return self.make_sample(number)


class _Collate:
    """Samples to a batch, inputs of convolutions in channels last."""

    def __init__(self, job: Job) -> None:
        self.inputs_in = _layouts(job.model) if job.channels_last else {}
        self.targets = job.targets

    def __call__(self, samples: list[Tensors]) -> Tensors:
        batch = default_collate(samples)
        inputs = len(batch) - self.targets
        return tuple(self._in_layout(tensor) if place < inputs else tensor for place, tensor in enumerate(batch))

    def _in_layout(self, tensor: Tensor) -> Tensor:
        layout = self.inputs_in.get(tensor.dim())
        return tensor if layout is None else tensor.contiguous(memory_format=layout)


class _Program:
    """The job's model, data and optimizer, ready to run."""

    def __init__(self, job: Job, device: torch.device, batches: int) -> None:
        self.job, self.device = job, device
        self.model = _prepared(job).to(device)
        if device.type == "cuda":
            torch.backends.cudnn.benchmark = job.cudnn_benchmark
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = job.tf32
        self.batches = _batches(job, batches, device)
        if job.is_training:
            self.optimizer = job.make_optimizer(self.model.parameters())
            self.reduction = Reduction(job) if job.ranks > 1 else None

    def run_step(self, number: int) -> None:
        """One step of the loop."""
        step = Step(number, self.device, self.job)
        if self.job.is_training:
            self._train(step)
        else:
            with torch.inference_mode() if self.job.no_grad else nullcontext():
                self._infer(step)
        self._run_hooks(Moment.END, step)

    def _train(self, step: Step) -> None:
        job = self.job
        for micro_step in range(job.accumulate):
            if self.reduction is not None:
                self.reduction.begin(is_last=micro_step == job.accumulate - 1)
            self._fetch(step)
            self._run_hooks(Moment.BEFORE_FORWARD, step)
            with self._autocast():
                step.outputs = job.forward(self.model, step.inputs)
                assert job.compute_loss is not None
                step.loss = job.compute_loss(step.outputs, step.targets)
            self._run_hooks(Moment.AFTER_FORWARD, step)
            (step.loss if job.accumulate == 1 else step.loss / job.accumulate).backward()
        self._run_hooks(Moment.AFTER_BACKWARD, step)
        self.optimizer.step()
        self._run_hooks(Moment.AFTER_OPTIMIZER, step)
        self.optimizer.zero_grad(set_to_none=job.zero_to_none)

    def _infer(self, step: Step) -> None:
        self._fetch(step)
        self._run_hooks(Moment.BEFORE_FORWARD, step)
        with self._autocast():
            step.outputs = self.job.forward(self.model, step.inputs)
        self._run_hooks(Moment.AFTER_FORWARD, step)
        if self.job.postprocess is not None:
            step.outputs = self.job.postprocess(step.outputs)

    def _fetch(self, step: Step) -> None:
        with _marked(self.job.loading.slug):
            batch = next(self.batches)
        transfer = self.job.transfer
        with _marked(transfer.slug):
            if transfer.prepare is not None:
                with marks.on_host():
                    batch = transfer.prepare(batch)
            options = {"pinned": transfer.pinned, "blocking": transfer.blocking}
            moved = tuple(marks.to_device(tensor, self.device, **options) for tensor in batch)
        inputs = len(moved) - self.job.targets
        step.inputs, step.targets = moved[:inputs], moved[inputs:]

    def _autocast(self) -> AbstractContextManager[object]:
        if self.job.autocast is None:
            return nullcontext()
        return torch.autocast(self.device.type, self.job.autocast)

    def _run_hooks(self, moment: Moment, step: Step) -> None:
        for hook in self.job.hooks.get(moment, ()):
            hook(step)


def _prepared(job: Job) -> nn.Module:
    """The model in its layout. Served in half precision, its products keep their weights so: autocast would else
    convert them in each step (the fault cast-thrash, which says so in the settings, wants just that)."""
    model = job.model.train(job.is_training)
    if job.channels_last:
        for layout in _layouts(model).values():
            model.to(memory_format=layout)  # pyright: ignore[reportCallIssue]
    if not job.is_training and job.autocast is not None and "cast-thrash" not in job.settings:
        for module in model.modules():
            if isinstance(module, (nn.Linear, nn.MultiheadAttention, nn.modules.conv._ConvNd)):
                module.to(job.autocast)
    return model


def _layouts(model: nn.Module) -> dict[int, torch.memory_format]:
    """Number of axes of a convolution's input -> the layout that is best for it, for the convolutions there are."""
    modules = list(model.modules())
    found = {}
    if any(isinstance(module, nn.Conv2d) for module in modules):
        found[4] = torch.channels_last
    if any(isinstance(module, nn.Conv3d) for module in modules):
        found[5] = torch.channels_last_3d
    return found


def _batches(job: Job, count: int, device: torch.device) -> Iterator[Tensors]:
    """Collated batches on the host: made before, or by a DataLoader."""
    collate, size = _Collate(job), job.batch_size
    if job.loading.from_memory:
        samples = _Samples(job, IN_MEMORY * size)
        return cycle([collate([samples[size * part + i] for i in range(size)]) for part in range(IN_MEMORY)])
    loader: Iterable[Tensors] = DataLoader(
        _Samples(job, count * size),
        batch_size=size,
        num_workers=job.loading.workers,
        # Samples are made by closures, which no other way hands over.
        multiprocessing_context="fork" if job.loading.workers else None,
        collate_fn=collate,
        pin_memory=job.transfer.pinned and device.type == "cuda",
    )
    return iter(loader)


def _marked(slug: str) -> AbstractContextManager[object]:
    return marks.spoiled(slug) if slug else marks.healthy()
