"""What a training that was stopped goes on from: one safetensors file, replaced whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

CHECKPOINT = "checkpoint.safetensors"
_PROGRESS = "progress"


class CheckpointError(ValueError):
    """There is no checkpoint that this training could go on from. The text says why."""


@dataclass(frozen=True, slots=True)
class Point:
    """One update, of the loss curve."""

    update: int
    pairs: int
    """Learned from so far, repetitions counted."""
    tokens: int
    seconds: float
    """Of training, before interruptions, too."""
    loss: float
    """Per answer token, by weight."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a training is."""

    task: str
    """What is trained on what, as a digest: only the same may go on."""
    seconds: float
    curve: tuple[Point, ...]

    @property
    def updates(self) -> int:
        """Made so far."""
        return len(self.curve)


def save_checkpoint(folder: Path, progress: Progress, state: dict[str, Tensor]) -> None:
    """Replace the folder's checkpoint. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{CHECKPOINT}.part"
    tensors = {name: tensor.cpu().contiguous() for name, tensor in state.items()}
    save_file(tensors, unfinished, metadata={_PROGRESS: msgspec.json.encode(progress).decode()})
    unfinished.replace(folder / CHECKPOINT)


def load_checkpoint(folder: Path, task: str) -> tuple[Progress, dict[str, Tensor]]:
    """The folder's checkpoint. Raises CheckpointError if there is none, or it is damaged or of another task."""
    path = folder / CHECKPOINT
    if not path.is_file():
        raise CheckpointError(f"no {CHECKPOINT} in {folder}")
    try:
        with safe_open(path, "pt") as file:
            progress = msgspec.json.decode(file.metadata()[_PROGRESS], type=Progress)
        state = load_file(path)
    except (SafetensorError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if progress.task != task:
        raise CheckpointError(f"{path} is of other pairs, another base or other settings")
    return progress, state
