"""Traces that a build of `bench.corpus` has kept, with what is known of their windows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.corpus.variants import FULL
from torchtraceap.analyzer.detector.model import Windows
from torchtraceap.analyzer.detector.training.dataset import TEST_FAMILIES, Dataset, shown_kinds
from torchtraceap.analyzer.trace.model import BoolArray, FloatArray, IntArray

_ENDING = ".pt.trace.json.gz"


@dataclass(frozen=True, slots=True)
class Kept:
    """One trace that was kept, and the part that holds its labels."""

    trace: Path
    part: Path
    """Of its run, without ending: `.npz` and `.json` are there."""
    run: int
    family: str
    device: str
    """As in the file's name: spaces are hyphens."""

    @property
    def is_for_exam(self) -> bool:
        """Whether it is of a family that nothing learns from."""
        return self.family in TEST_FAMILIES


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of each region of a trace. R regions, K kinds."""

    kinds: tuple[str, ...]
    share: FloatArray
    """Shape (R, K): how much of the region's time each kind has spoiled, 0 to 1."""
    cost: FloatArray
    """Shape (R,): the region's part of its step."""
    shown: BoolArray
    """Shape (R, K): whether it shows a kind, and at a price that matters."""
    known: BoolArray
    """Shape (R,): whether the step that was labelled has the region."""
    injected: frozenset[str]
    """The kinds of the whole trace: what was put in, and what is a fact of it."""

    def shown_in(self, region: int) -> tuple[str, ...]:
        """The kinds that a region shows, the one that has spoiled most of it first."""
        order = np.argsort(-self.share[region], kind="stable")
        return tuple(self.kinds[at] for at in order.tolist() if self.shown[region, at])

    def is_clean(self, region: int, least: float) -> bool:
        """Whether no kind has spoiled as much as `least` of the region."""
        return bool(self.known[region]) and bool((self.share[region] < least).all())


def kept_traces(traces: Path, parts: Path) -> Iterator[Kept]:
    """All kept traces whose part is written, in order of name. `parts` is the folder of a build's parts."""
    for trace in sorted(traces.glob(f"*{_ENDING}")):
        stem = trace.name.removesuffix(_ENDING)
        run, device = int(stem.partition("_")[0]), stem.rpartition("_")[2]
        part = parts / f"{run:05}"
        row = part.with_suffix(".json")
        if row.exists():
            yield Kept(trace, part, run, json.loads(row.read_text("utf-8"))["family"], device)


def labels_of(kept: Kept, windows: Windows) -> Labels:
    """The labels of a kept trace's regions. `windows` is what its timeline was cut into. Raises ValueError where the
    part does not belong to these windows."""
    dataset = Dataset.load(kept.part.with_suffix(".npz"))
    devices = [name.replace(" ", "-") for name in dataset.device.tolist()]
    number = _number(kept, devices, dataset.variant.tolist())
    rows = np.flatnonzero(dataset.trace == number)
    region = _labelled_regions(windows)
    if not np.array_equal(dataset.region[rows], region):
        raise ValueError(f"{kept.trace.name} is cut otherwise than when it was labelled")
    chosen = dataset.take(rows)
    regions, kinds = len(windows.regions), len(dataset.kinds)
    share, cost = np.zeros((regions, kinds)), np.zeros(regions)
    shown, known = np.zeros((regions, kinds), dtype=np.bool_), np.zeros(regions, dtype=np.bool_)
    # A region that a step enters twice shows what the greater part of it shows.
    order = np.argsort(chosen.cost, kind="stable")
    at = region[order]
    share[at], cost[at], known[at] = chosen.label[order], chosen.cost[order], True
    shown[at] = shown_kinds(chosen)[order]
    slugs = tuple(dataset.kinds.tolist())
    injected = frozenset(slug for slug, is_there in zip(slugs, dataset.injected[number], strict=True) if is_there)
    return Labels(slugs, share, cost, shown, known, injected)


def _number(kept: Kept, devices: Sequence[str], variants: Sequence[str]) -> int:
    for number, (device, variant) in enumerate(zip(devices, variants, strict=True)):
        if (device, variant) == (kept.device, FULL):
            return number
    raise ValueError(f"{kept.part.name} knows nothing of {kept.device}")


def _labelled_regions(windows: Windows) -> IntArray:
    """The regions of the middle step, as `bench.corpus.extract` keeps them."""
    steps = np.unique(windows.step)
    return windows.region[windows.step == steps[len(steps) // 2]].astype(np.int64)
