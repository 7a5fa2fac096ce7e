"""Small programs, recorded once on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.corpus import marks
from bench.corpus.cleaning import without_overhead
from bench.corpus.job import Job, Moment, Step
from bench.corpus.running import record
from bench.corpus.simulator import JobSettings, simulate
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.read import read_trace

BATCH = 5


@dataclass(frozen=True)
class Recorded:
    """A recording and its job's settings."""

    document: bytes
    settings: JobSettings


class Residual(nn.Module):
    """Two convolutions with a way around."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        """Shape in, shape out."""
        return images + self.second(F.relu(self.norm(self.first(images))))


class Convolutions(nn.Module):
    """A small residual network."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7, stride=2, padding=3)
        self.blocks = nn.Sequential(Residual(64), Residual(64))
        self.head = nn.Linear(64, 16)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, h, w) -> (batch, 16)."""
        return self.head(self.blocks(F.max_pool2d(self.stem(images), 2)).mean((2, 3)))


class Attention(nn.Module):
    """A small transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 8, 8)
        self.norm = nn.LayerNorm(64)
        self.qkv = nn.Linear(64, 192)
        self.out = nn.Linear(64, 64)
        self.head = nn.Linear(64, 16)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, 3, h, w) -> (batch, 16)."""
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        batch, length, width = tokens.shape
        q, k, v = self.qkv(self.norm(tokens)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        return self.head(F.gelu(tokens + self.out(attended)).mean(1))


def _sample(number: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(3, 32, 32, generator=generator), torch.tensor(number % 16)


def _record(job: Job) -> Recorded:
    return Recorded(without_overhead(record(job)), JobSettings.of(job))


def _training(model: nn.Module) -> Job:
    return Job(
        family="small",
        model=model,
        is_training=True,
        make_sample=_sample,
        targets=1,
        batch_size=BATCH,
        compute_loss=lambda outputs, targets: F.cross_entropy(outputs, targets[0]),  # pyright: ignore[reportArgumentType]
    )


@pytest.fixture(scope="session")
def convolutions() -> Recorded:
    """Training of a small residual network over two ranks."""
    job = _training(Convolutions())
    job.ranks = 2
    return _record(job)


@pytest.fixture(scope="session")
def attention() -> Recorded:
    """Training of a small transformer, which reads its loss, picks by a mask, and works on host tensors."""

    def read(step: Step) -> None:
        assert step.loss is not None
        step.loss.item()
        with marks.on_host():
            torch.ones(64).add(1.0)
        assert isinstance(step.outputs, Tensor)
        step.outputs[step.outputs > 0].sum()

    job = _training(Attention())
    job.hook(Moment.AFTER_BACKWARD, read)
    return _record(job)


@pytest.fixture(scope="session")
def inference() -> Recorded:
    """Inference with acts: synchronise, empty the cache, copy to the host."""

    def act(step: Step) -> None:
        with marks.act("synchronize"):
            pass
        with marks.act("empty_cache"):
            torch.empty(BATCH, 100)
        assert isinstance(step.outputs, Tensor)
        marks.to_host(step.outputs)

    job = _training(Convolutions())
    job.is_training, job.compute_loss = False, None
    job.hook(Moment.AFTER_FORWARD, act)
    return _record(job)


def timeline_of(document: bytes, folder: Path) -> Timeline:
    """The document as the analyzer sees it."""
    path = folder / "run.pt.trace.json"
    path.write_bytes(document)
    return build_timeline(read_trace(path))


def run(recorded: Recorded, device: str, folder: Path, settings: JobSettings | None = None, seed: int = 1) -> Timeline:
    """Simulate, and read the result."""
    return timeline_of(simulate(recorded.document, device, settings or recorded.settings, seed), folder)
