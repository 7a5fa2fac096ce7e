"""What each half of the corpus is good for: the detector trained without it, judged as the whole one is."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from torchtraceap.analyzer.detector.scorer import Detector
from torchtraceap.analyzer.detector.training.dataset import Dataset
from torchtraceap.analyzer.detector.training.split import split
from torchtraceap.analyzer.detector.training.train import Settings, train
from torchtraceap.analyzer.trace.model import BoolArray

from .evaluate import Judged, judge
from .ours import Shipped

_LEFT_OUT = {"without the simulator's traces": "simulated", "without the CPU's traces": "cpu"}


def retrained(dataset: Dataset, test: BoolArray, seed: int) -> list[Judged]:
    """Train once without each source of traces, and judge on the `test` windows (mask)."""
    found = []
    for name, source in _LEFT_OUT.items():
        is_left_out = (dataset.source == source)[dataset.trace] & split(dataset).training
        kept = np.flatnonzero(~is_left_out)
        with tempfile.TemporaryDirectory() as folder:
            train(dataset.take(kept), Path(folder), Settings(seed=seed), tell=print)
            method = Shipped(f"ours, {name}", Detector.load(Path(folder)))
            found.append(judge(method, dataset, test))
    return found
