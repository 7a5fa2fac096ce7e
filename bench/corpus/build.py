"""Makes the corpus: runs every planned program, simulates it on devices, and keeps the windows of all traces.

Each run leaves a part (`parts.py`), so that a build that was ended goes on where it was.
"""

from __future__ import annotations

import gzip
import multiprocessing
import random
import signal
import warnings
from collections.abc import Generator, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import torch

from torchtraceap.analyzer.detector.training.dataset import Dataset

from .cleaning import Cleaned, take_out, without_overhead
from .extract import Origin, extract
from .parts import Parts
from .plan import Made, Plan, costly, devices_of, fill, make, plan_runs
from .running import record
from .simulator import simulate

LONGEST_S = 180
"""A run that takes longer hangs."""
RUNS_EACH = 25
"""Runs of one process before a fresh one takes over: what recordings leave behind adds up."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a build is asked for."""

    out: Path
    runs: int
    seed: int
    device: str
    """"cpu": recorded here and simulated on devices; "cuda": recorded on the GPU at hand."""
    keep_traces: Path | None = None
    """Where the documents are kept, gzip-compressed; None: nowhere."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run."""

    number: int
    traces: int = 0
    windows: int = 0
    failure: str = ""
    """In words; "" if there was none."""


def build(settings: Settings, processes: int) -> Iterator[Outcome]:
    """Make all runs that have no part yet; what became of each, as they are done. Then `join` makes the corpus."""
    parts = Parts(settings.out)
    todo = [plan for plan in plan_runs(settings.runs, settings.seed) if not parts.has(plan)]
    while todo:
        # What recordings leave behind in a process adds up, so fresh ones take over.
        now, todo = todo[: processes * RUNS_EACH], todo[processes * RUNS_EACH :]
        lost = yield from _make_parts(now, settings, processes)
        for plan in lost:
            if (yield from _make_parts([plan], settings, 1)):
                yield Outcome(plan.number, failure="it ended its process")


def _make_parts(plans: list[Plan], settings: Settings, processes: int) -> Generator[Outcome, None, list[Plan]]:
    """What became of each run; returned are those that were lost when one ended its process."""
    lost = []
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, _begin_process) as pool:
        pending = {pool.submit(make_part, plan, settings): plan for plan in plans}
        for future in as_completed(pending):
            try:
                yield future.result()
            except BrokenProcessPool:
                lost.append(pending[future])
            except Exception as error:  # noqa: BLE001 - one run's fault must not cost the others
                yield Outcome(pending[future].number, failure=f"{type(error).__name__}: {error}")
    return lost


def join(settings: Settings) -> Dataset:
    """The corpus of all parts. Raises ValueError if there are none."""
    return Parts(settings.out).join(plan_runs(settings.runs, settings.seed), settings.seed)


def make_part(plan: Plan, settings: Settings) -> Outcome:
    """Make one run and write its part. Raises whatever goes wrong, TimeoutError if it takes too long."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LONGEST_S)
    try:
        return _make_part(plan, settings)
    finally:
        signal.alarm(0)


def _make_part(plan: Plan, settings: Settings) -> Outcome:
    made = make(plan)
    rng = random.Random(plan.seed)
    found = []
    for origin, cleaned in _documents(plan, made, settings.device):
        if settings.keep_traces is not None:
            _keep(settings.keep_traces, plan, origin, cleaned)
        found.append(extract(cleaned, origin, rng))
    part = Dataset.concatenate(found)
    Parts(settings.out).write(plan, part, _row(made, part))
    return Outcome(plan.number, traces=part.traces, windows=len(part))


def _documents(plan: Plan, made: Made, device: str) -> Iterator[tuple[Origin, Cleaned]]:
    """The run's recording, and what it would have been on devices."""
    job = made.job
    if device == "cuda":
        job.batch_size *= job.batch_multiplier
        recording = without_overhead(record(job, torch.device("cuda")), keeps_time=True)
        name = torch.cuda.get_device_name()
        injected = costly(made.faults, on_cpu=False)
        yield Origin(job.family, name, "cuda", job.is_training, injected), take_out(recording, job.family)
        return
    recording = without_overhead(record(job))
    injected = costly(made.faults, on_cpu=True)
    yield (
        Origin(job.family, "cpu", "cpu", job.is_training, injected),
        take_out(recording, job.family, moves_nothing=True),
    )
    injected = costly(made.faults, on_cpu=False)
    for name in devices_of(plan, job.family):
        filled = replace(job, batch_multiplier=fill(job.batch_multiplier, name, plan))
        simulated = simulate(recording, name, filled, plan.seed)
        yield Origin(job.family, name, "simulated", job.is_training, injected), take_out(simulated, job.family)


def _row(made: Made, part: Dataset) -> dict[str, object]:
    """The run's line of the manifest."""
    job = made.job
    return {
        "family": job.family,
        "training": job.is_training,
        "devices": list(dict.fromkeys(part.device.tolist())),
        "faults": list(made.faults),
        "controls": list(made.controls),
        "batch": job.batch_size,
        "times": job.batch_multiplier,
        "autocast": job.autocast is not None,
        "ranks": job.ranks,
        "accumulate": job.accumulate,
        "settings": job.settings,
        "windows": len(part),
    }


def _keep(folder: Path, plan: Plan, origin: Origin, cleaned: Cleaned) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{plan.number:04}_{origin.family}_{origin.device.replace(' ', '-')}.pt.trace.json.gz"
    (folder / name).write_bytes(gzip.compress(cleaned.document, compresslevel=3))


def _begin_process() -> None:
    """Loaders of this process fork their workers: samples are made by closures, which no other way hands over. What
    torch warns of is what faults do on purpose."""
    multiprocessing.set_start_method("fork", force=True)
    warnings.filterwarnings("ignore", category=UserWarning)


def _too_long(_: int, __: FrameType | None) -> None:
    raise TimeoutError(f"the run took more than {LONGEST_S} s")
