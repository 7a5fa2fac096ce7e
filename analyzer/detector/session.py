"""One ONNX model, loaded with care: its files may be missing, damaged, of another version, or made to do harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..trace.model import FloatArray

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_MOST_BYTES = 16 << 20
"""Of one file of a model; ours are smaller."""
_ELSEWHERE = b"location"
"""What ONNX calls the path of weights that are in a file of their own; onnxruntime would look for it where we run."""


class DetectorError(Exception):
    """There is no detector: its files or onnxruntime are missing, or do not fit this version. The text says which."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What one model says."""

    bad: FloatArray
    """P(bad), shape (windows,)."""
    kind: FloatArray
    """P(kind | bad), shape (windows, kinds)."""


@dataclass(frozen=True, slots=True)
class Model:
    """One ONNX model."""

    name: str
    session: InferenceSession
    kinds: int

    @classmethod
    def load(cls, path: Path, inputs: Mapping[str, tuple[str, tuple[int | None, ...]]], kinds: int) -> Model:
        """Load a model with these inputs (types and shapes, None for any size) and the outputs `bad` and `kind`.

        Raises DetectorError if it has others, or none at all.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise DetectorError(f"the detector needs onnxruntime, which cannot be imported: {error}") from error
        content = content_of(path)
        if _ELSEWHERE in content:
            raise DetectorError(f"{path.name} has weights in another file, which is not read")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's have no base of their own
            raise DetectorError(f"{path.name} is no usable model: {error}") from error
        found = {one.name: (one.type, tuple(_size(size) for size in one.shape)) for one in session.get_inputs()}
        if found != dict(inputs) or {one.name for one in session.get_outputs()} != {"bad", "kind"}:
            raise DetectorError(f"{path.name} does not fit its card: it takes {found}, wanted {dict(inputs)}")
        return cls(path.name, session, kinds)

    def run(self, **inputs: np.ndarray) -> Answers:
        """The model's answers, one for each window. Raises DetectorError if it fails or answers nonsense."""
        count = len(next(iter(inputs.values())))
        try:
            bad, kind = (np.asarray(answer, dtype=np.float64) for answer in self.session.run(["bad", "kind"], inputs))
        except Exception as error:  # as above
            raise DetectorError(f"{self.name} failed: {error}") from error
        if bad.shape != (count, 1) or kind.shape != (count, self.kinds):
            raise DetectorError(f"{self.name} answers {bad.shape} and {kind.shape} for {count} windows")
        if not np.all(np.isfinite(bad)) or not np.all(np.isfinite(kind)):
            raise DetectorError(f"{self.name} answers what is no number")
        return Answers(np.clip(bad[:, 0], 0.0, 1.0), np.clip(kind, 0.0, 1.0))


def _size(size: object) -> int | None:
    """A fixed size of an axis; None for one that is open."""
    return size if isinstance(size, int) else None


def content_of(path: Path) -> bytes:
    """A file of a model, if it is there and of a sensible size."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise DetectorError(f"{path.name} is larger than {_MOST_BYTES:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise DetectorError(f"{path.name} cannot be read: {error.strerror or error}") from error
