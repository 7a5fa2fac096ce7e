"""A small job to inject into, and what its recording shows."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import msgspec
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.corpus.job import Job, Tensors
from bench.corpus.marks import PREFIX, SPOILED
from bench.corpus.running import record
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.read import read_trace

SIDE, CLASSES = 16, 6


class Block(nn.Module):
    """Convolution, norm, activation."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    """Bytes of images to logits; images of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(3, 8), Block(8, 8), Block(8, 8), Block(8, 8))
        self.head = nn.Linear(8, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.blocks(image / 255).mean((2, 3)))


def make_job(training: bool) -> Job:
    """A healthy job."""
    torch.manual_seed(0)

    def make_sample(number: int) -> Tensors:
        image = torch.randint(256, (3, SIDE, SIDE), dtype=torch.uint8)
        return (image, torch.tensor(number % CLASSES)) if training else (image,)

    return Job(
        family="tiny",
        model=Net().train(training),
        is_training=training,
        make_sample=make_sample,
        targets=int(training),
        batch_size=5,
        compute_loss=(lambda outputs, targets: F.cross_entropy(outputs, targets[0])) if training else None,
        postprocess=None if training else lambda outputs: outputs.argmax(1),
    )


def bare_job(training: bool) -> Job:
    """Numbers in, numbers out: one parameter and nothing else."""
    return Job(
        family="bare",
        model=nn.Linear(1, 1, bias=False).train(training),
        is_training=training,
        make_sample=lambda number: (torch.rand(1), torch.rand(1)) if training else (torch.rand(1),),
        targets=int(training),
        batch_size=5,
        compute_loss=(lambda outputs, targets: F.mse_loss(outputs, targets[0])) if training else None,
    )


@dataclass(frozen=True)
class Event:
    """A host event of a recording."""

    name: str
    types: str


class _Raw(msgspec.Struct):
    ph: str = ""
    name: str = ""
    cat: str = ""
    tid: int | str = 0
    ts: float = 0.0
    dur: float = 0.0
    args: dict[str, object] = msgspec.field(default_factory=dict)


class _Document(msgspec.Struct):
    traceEvents: list[_Raw]


class Recording:
    """A step of a job, or some."""

    def __init__(self, job: Job, steps: int = 1) -> None:
        self.document = record(job, steps=steps, warm_up=1)
        events = msgspec.json.decode(self.document, type=_Document).traceEvents
        self.events = sorted((event for event in events if event.ph == "X"), key=lambda event: (event.ts, -event.dur))

    def inside(self, slug: str) -> list[Event]:
        """What lies in the fault's ranges."""
        ranges = [event for event in self.events if event.name == SPOILED + slug]
        return [
            Event(event.name, str(event.args.get("Input type", "")))
            for event in self.events
            if any(_holds(outer, event) for outer in ranges if outer is not event)
        ]

    def count(self, name: str) -> int:
        """How many events match an expression, those of the corpus among them."""
        return sum(bool(re.search(name, event.name)) for event in self.events)

    @property
    def is_marked(self) -> bool:
        """Whether any fault has marked anything."""
        return any(event.name.startswith(SPOILED) for event in self.events)

    def timeline(self, folder) -> Timeline:
        """As the analyzer reads it, marks and all."""
        path = folder / "run.json"
        path.write_bytes(self.document)
        return build_timeline(read_trace(path))


def _holds(outer: _Raw, event: _Raw) -> bool:
    return (
        outer.tid == event.tid
        and outer.ts <= event.ts
        and event.ts + event.dur <= outer.ts + outer.dur
        and not event.name.startswith(PREFIX + "spoiled")
    )


def injected(fault, training: bool, seed: int) -> Job | None:
    """A job with the fault, or None where it has no room."""
    job = make_job(training)
    return job if fault.apply(job, random.Random(seed)) else None
