"""From a recorded or simulated document to the rows of a `Dataset`."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.detector.rule_scores import rule_scores
from torchtraceap.analyzer.detector.features.schema import NAMES, compute
from torchtraceap.analyzer.detector.inputs import SCHEMA, rounded
from torchtraceap.analyzer.detector.model import Windows
from torchtraceap.analyzer.detector.sequence import sequences
from torchtraceap.analyzer.detector.training.dataset import Dataset
from torchtraceap.analyzer.detector.windows import cut
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.trace.model import BoolArray, Trace
from torchtraceap.analyzer.trace.read import read_trace

from .cleaning import Cleaned
from .fault import all_faults
from .labels import Spoilage, find_spoilage, label_windows
from .variants import FULL, STRIPPED

STRIPPED_SHARE = 0.5
"""Of the runs so many also give a trace with less recorded in it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document comes from."""

    family: str
    device: str
    """"cpu", or the device's name."""
    source: str
    """"cpu", "simulated" or "cuda"."""
    training: bool
    injected: tuple[str, ...]
    """The kinds that cost something on the device."""


def extract(cleaned: Cleaned, origin: Origin, rng: random.Random) -> Dataset:
    """The windows of one run: of all that was recorded, and of some runs, as a trace of its own, a stripped variant.

    Raises TraceError if the document is no trace, and ValueError if there are no windows in it.
    """
    trace = _read(cleaned.document)
    timeline = build_timeline(trace)
    spoilage = _find_spoilage(timeline, cleaned, origin)
    parts = [_rows(timeline, spoilage, origin, FULL)]
    names = [name for name in STRIPPED if name != "device only" or not timeline.is_cpu_only]
    if rng.random() < STRIPPED_SHARE:
        variant = rng.choice(names)
        parts.append(_rows(build_timeline(STRIPPED[variant](trace)), spoilage, origin, variant))
    together = Dataset.concatenate(parts)
    together.run[:] = 0
    return together


def _read(document: bytes) -> Trace:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        path.write_bytes(document)
        return read_trace(path)


def _find_spoilage(timeline: Timeline, cleaned: Cleaned, origin: Origin) -> dict[str, Spoilage]:
    """By kind; of the kinds that are facts only those that show."""
    where = "cpu" if timeline.is_cpu_only else "device"
    facts = {
        slug: fault.spoils
        for slug, fault in all_faults().items()
        if fault.is_fact and where in fault.on and fault.spoils is not None
    }
    rules = {slug: all_faults()[slug].spoils for slug in origin.injected if slug not in facts}
    found = find_spoilage(timeline, cleaned.spoiled, rules, facts)
    return {slug: kind for slug, kind in found.items() if slug in rules or len(kind.device)}


def _rows(timeline: Timeline, spoilage: Mapping[str, Spoilage], origin: Origin, variant: str) -> Dataset:
    windows = cut(timeline)
    if not len(windows):
        raise ValueError(f"no windows in a trace of {origin.family} on {origin.device} ({variant})")
    kinds = tuple(sorted(all_faults()))
    places = [kinds.index(slug) for slug in spoilage]
    kept = _kept(windows)
    events = sequences(timeline, windows)
    labels = label_windows(timeline, windows, list(spoilage.values()))
    label, injected = np.zeros((len(windows), len(kinds))), np.zeros((1, len(kinds)), dtype=np.bool_)
    label[:, places] = labels.share
    injected[0, places] = True
    return Dataset(
        schema=SCHEMA,
        kinds=np.array(kinds),
        feature_names=np.array(NAMES),
        features=rounded(compute(timeline, windows)[kept]),
        token=events.token[kept],
        figures=events.figures[kept],
        label=label[kept].astype(np.float16),
        cost=labels.cost[kept].astype(np.float32),
        rule_score=rule_scores(timeline, windows, kinds)[kept].astype(np.float16),
        region=windows.region[kept],
        step=windows.step[kept].astype(np.int16),
        trace=np.zeros(int(kept.sum()), dtype=np.int32),
        run=np.zeros(1, dtype=np.int32),
        family=np.array([origin.family]),
        device=np.array([origin.device]),
        source=np.array([origin.source]),
        training=np.array([origin.training]),
        variant=np.array([variant]),
        injected=injected,
    )


def _kept(windows: Windows) -> BoolArray:
    """The windows of a middle step: the others would say the same again."""
    steps = np.unique(windows.step)
    return windows.step == steps[len(steps) // 2]
