"""One start of a worker's index, in a process of its own: `python -m bench.index.task ROOT CACHE TOUCHED`.

Prints JSON: seconds and processor seconds until everything is known, milliseconds for each of TOUCHED changed files,
milliseconds for a question about all files, and the process's peak memory.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from torchtraceap.codemap.survey import Survey


def measure(root: Path, cache: Path, touched: int) -> dict[str, object]:
    """Index, then change some files one at a time."""
    before_mb = peak_mb()
    started_s, started_cpu_s = time.perf_counter(), time.process_time()
    survey = Survey(root, cache=cache)
    survey.refresh()
    to_read = survey.left
    survey.read()
    wall_s, cpu_s = time.perf_counter() - started_s, time.process_time() - started_cpu_s
    survey.save()
    paths = survey.paths()
    changed_ms = [_change(survey, root, path) for path in paths[:: max(len(paths) // touched, 1)][:touched]]
    started_s = time.perf_counter()
    survey.where(lambda facts: facts.calls("conv2d"))
    asked_ms = 1e3 * (time.perf_counter() - started_s)
    return {
        "files": len(paths),
        "read": to_read,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "changed_ms": changed_ms,
        "asked_ms": asked_ms,
        "peak_mb": peak_mb(),
        "bare_mb": before_mb,
    }


def _change(survey: Survey, root: Path, path: str) -> float:
    """Milliseconds from a file's change to its new facts."""
    text = (root / path).read_bytes()
    (root / path).write_bytes(text + b"\ndef changed_just_now(): pass\n")
    started_s = time.perf_counter()
    survey.update(path)
    facts = survey.facts(path)
    elapsed_ms = 1e3 * (time.perf_counter() - started_s)
    if facts is None or not facts.defines("changed_just_now"):
        raise SystemExit(f"{path}: the change was not seen")
    return elapsed_ms


def peak_mb() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))
