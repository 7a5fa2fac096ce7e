"""Measures the reader beside `json.loads`, orjson and HTA. Run as `python -m bench.parse [FOLDER]`.

Every task runs in its own process on the same uncompressed file; times are CPU seconds, medians of a few runs taken in
turn. Peak memory is above what the imports take.
"""

from __future__ import annotations

import gzip
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ..folder import trace_named, traces_folder
from ..results import Figure, Target, publish
from .longer import write_longer

ROOT = Path(__file__).parents[2]
NAMES = ("S01", "S06", "S10")
LONG_NAME = "S06"
LONG_COPIES = 30
RUNS = 5
LONG_RUNS = 3
TASKS = ("json", "orjson", "hta", "read", "analysis")
TARGETS = {
    "read_vs_json": Target(at_most=0.5),
    "analysis_vs_json": Target(at_most=1.5),
    "hta_parse_vs_read": Target(at_least=10.0),
    "hta_parse_vs_analysis": Target(at_least=3.0),
    "rss_vs_raw": Target(at_most=1.0),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one task took: the median of its runs."""

    cpu_s: float
    rss_bytes: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; 0 if every target was met."""
    traces = traces_folder("parse", __doc__, arguments)
    if traces is None:
        return 0
    tasks = [task for task in TASKS if task not in ("hta", "orjson") or find_spec(task)]
    notes = [f"{task} is not installed" for task in TASKS if task not in tasks]
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            path = Path(folder) / f"{name}.json"
            path.write_bytes(gzip.decompress(trace_named(traces, name).read_bytes()))
            figures += compare(name, path, tasks, RUNS, notes)
        long_path = Path(folder) / "long.json"
        write_longer((Path(folder) / f"{LONG_NAME}.json").read_bytes(), long_path, LONG_COPIES)
        figures += compare(f"{LONG_NAME} x {LONG_COPIES}", long_path, tasks, LONG_RUNS, notes)
    packages = ("numpy", "msgspec", "isal", "orjson", "traceinsight", "pandas")
    return 0 if publish("parse", figures, targets=TARGETS, packages=packages, notes=notes) else 1


def compare(name: str, path: Path, tasks: list[str], runs: int, notes: list[str]) -> list[Figure]:
    """The figures of one trace."""
    costs = measure(path, tasks, runs, notes)
    raw = path.stat().st_size
    found = [Figure(name, "raw_mb", raw / 1e6)]
    found += [Figure(name, f"{task}_cpu_s", cost.cpu_s) for task, cost in costs.items()]
    found += [Figure(name, f"{task}_rss_mb", cost.rss_bytes / 1e6) for task, cost in costs.items()]
    if "read" in costs:
        found.append(Figure(name, "read_vs_json", costs["read"].cpu_s / costs["json"].cpu_s))
        found.append(Figure(name, "rss_vs_raw", costs["read"].rss_bytes / raw))
    if "analysis" in costs:
        found.append(Figure(name, "analysis_vs_json", costs["analysis"].cpu_s / costs["json"].cpu_s))
    if "hta" in costs:
        found.append(Figure(name, "hta_parse_vs_read", costs["hta"].cpu_s / costs["read"].cpu_s))
        if "analysis" in costs:
            found.append(Figure(name, "hta_parse_vs_analysis", costs["hta"].cpu_s / costs["analysis"].cpu_s))
    return found


def measure(path: Path, tasks: list[str], runs: int, notes: list[str]) -> dict[str, Cost]:
    """Run all tasks in turn, `runs` times; a task that fails is left out, with a note."""
    samples: dict[str, list[Cost]] = {}
    failed: set[str] = set()
    for _ in range(runs):
        for task in tasks:
            if task in failed:
                continue
            command = [sys.executable, "-m", "bench.parse.task", task, str(path)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                failed.add(task)
                notes.append(f"{task} failed on {path.stem}: {(done.stderr.splitlines() or ['killed'])[-1][:200]}")
                continue
            result = json.loads(done.stdout.splitlines()[-1])
            samples.setdefault(task, []).append(Cost(result["cpu_s"], result["rss_bytes"]))
    return {task: median(costs) for task, costs in samples.items() if task not in failed}


def median(costs: list[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(
        statistics.median([cost.cpu_s for cost in costs]), statistics.median([cost.rss_bytes for cost in costs])
    )


if __name__ == "__main__":
    sys.exit(main())
