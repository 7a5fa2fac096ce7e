"""What the detector costs beside reading the trace: `python -m bench.detector.cost [FOLDER]`.

Times are CPU seconds, medians of a few runs in one process after one that does not count. What the detector shares with
the rules (`Timeline`) is not counted; what it is the first to ask of a timeline is.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.folder import trace_named, traces_folder
from bench.results import Figure, Target, show, target_of
from bench.timing import cpu_s
from torchtraceap.analyzer.detector.inputs import make_inputs
from torchtraceap.analyzer.detector.scorer import Detector
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.trace.read import read_trace

NAMES = ("S02", "S06", "S08", "S12")
RUNS = 5
SHORT = ("S08", "S12")
"""Read in some 10 ms, which no share of could hold what is the same for every trace: their time itself is bounded."""
TARGETS = {f"{name} detector_vs_read": Target(at_most=0.25) for name in NAMES if name not in SHORT}
TARGETS |= {f"{name} detector_cpu_ms": Target(at_most=30.0) for name in SHORT}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and answer 0 if every target is met."""
    folder = traces_folder("detector.cost", __doc__, arguments)
    if folder is None:
        return 0
    figures = list(measure({name: trace_named(folder, name) for name in NAMES}, Detector.load()))
    results: dict[str, dict[str, float]] = defaultdict(dict)
    for figure in figures:
        results[figure.subject][figure.name] = figure.value
    show("detector: cost", results, TARGETS)
    wanted = [(target_of(TARGETS, figure.subject, figure.name), figure.value) for figure in figures]
    return 0 if all(target.met_by(value) for target, value in wanted if target is not None) else 1


def measure(paths: Mapping[str, Path], detector: Detector) -> Iterator[Figure]:
    """The figures of each trace."""
    for name, path in paths.items():
        took_ms: dict[str, list[float]] = defaultdict(list)
        for number in range(RUNS + 1):
            for part, cpu_ms in _one_run(path, detector):
                if number:
                    took_ms[part].append(cpu_ms)
        medians = {part: statistics.median(values) for part, values in took_ms.items()}
        yield from (Figure(name, f"{part}_cpu_ms", value) for part, value in medians.items())
        whole_ms = sum(value for part, value in medians.items() if part != "read")
        yield Figure(name, "detector_cpu_ms", whole_ms)
        yield Figure(name, "detector_vs_read", whole_ms / medians["read"])


def _one_run(path: Path, detector: Detector) -> Iterator[tuple[str, float]]:
    """Each part and its CPU time in ms."""
    read_s, trace = cpu_s(lambda: read_trace(path))
    yield "read", 1000.0 * read_s
    timeline = build_timeline(trace)
    inputs_s, inputs = cpu_s(lambda: make_inputs(timeline))
    yield "inputs", 1000.0 * inputs_s
    infer_s, _ = cpu_s(lambda: detector.score_inputs(inputs))
    yield "inference", 1000.0 * infer_s


if __name__ == "__main__":
    raise SystemExit(main())
