"""What the rules cost beside reading the trace: `python -m bench.rules [FOLDER]`.

Times are CPU seconds, the least of a few runs in one process; per trace the sum over all rules in per cent of reading
it, and the dearest rules. A rule's time holds what it is the first to work out of what several share.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from torchtraceap.analyzer.patterns.registry import all_patterns
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.family import recognise
from torchtraceap.analyzer.trace.read import read_trace

from ..folder import trace_named, traces_folder
from ..results import Figure, Target, publish
from ..timing import T, cpu_s

NAMES = ("S01", "S02", "S05", "S06", "S08", "S10", "S11")
RUNS = 3
DEAREST = 5
TARGETS = {"rules_vs_read": Target(at_most=0.5)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, publish, and answer 0 if every target is met."""
    traces = traces_folder("rules", __doc__, arguments)
    if traces is None:
        return 0
    paths = {name: trace_named(traces, name) for name in NAMES}
    paths |= {path.parent.name: path for path in sorted((traces.parent / "projects").glob("*/trace.json.gz"))}
    figures = [figure for name, path in paths.items() for figure in _figures(name, path)]
    return 0 if publish("rules", figures, targets=TARGETS) else 1


def _figures(name: str, path: Path) -> Iterator[Figure]:
    patterns = all_patterns()
    read_s, trace = _least_cpu_s(lambda: read_trace(path))
    each_s: dict[str, list[float]] = defaultdict(list)
    totals_s: list[float] = []
    for _ in range(RUNS):
        timeline = build_timeline(trace)
        total_s, _ = cpu_s(lambda: recognise(timeline))  # noqa: B023 - called at once
        for pattern in patterns:
            took_s, _ = cpu_s(lambda: list(pattern.find(timeline)))  # noqa: B023
            each_s[pattern.slug].append(took_s)
            total_s += took_s
        totals_s.append(total_s)
    yield Figure(name, "read_cpu_ms", 1000 * read_s)
    yield Figure(name, "rules_cpu_ms", 1000 * min(totals_s))
    yield Figure(name, "rules_vs_read", min(totals_s) / read_s)
    dearest = sorted(each_s.items(), key=lambda item: -min(item[1]))[:DEAREST]
    print(f"{name}: " + ", ".join(f"{slug} {1000 * min(took):.1f} ms" for slug, took in dearest))


def _least_cpu_s(run: Callable[[], T]) -> tuple[float, T]:
    return min((cpu_s(run) for _ in range(RUNS)), key=lambda took: took[0])


if __name__ == "__main__":
    sys.exit(main())
