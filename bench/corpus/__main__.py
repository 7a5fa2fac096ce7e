"""`python -m bench.corpus`: makes the corpus that the detector learns from and is judged by."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from pathlib import Path

# Keeps torch's own lines on every recording out; read when it is loaded.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

from .build import Settings, build, join
from .parts import CORPUS

HERE = Path(__file__).parent
SAY_EVERY = 10


def main() -> int:
    """Build, say how far it is, and what came of it; 1 if no run succeeded."""
    parser = argparse.ArgumentParser(prog="python -m bench.corpus", description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "features", help="where parts and corpus are written")
    parser.add_argument("--runs", type=int, default=870, help="programs to run; each gives about three traces")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--keep-traces", type=Path, default=None, metavar="DIR", help="keep the traces themselves too")
    given = parser.parse_args()
    settings = Settings(given.out, given.runs, given.seed, given.device, given.keep_traces)
    failures = _run(settings, given.processes)
    for failure, count in Counter(failures).most_common():
        print(f"{count} failed: {failure}")
    try:
        corpus = join(settings)
    except ValueError as error:
        print(error)
        return 1
    path = settings.out / CORPUS
    print(f"{path}: {corpus.traces} traces, {len(corpus)} windows, {path.stat().st_size / 1e6:.1f} MB")
    return 0


def _run(settings: Settings, processes: int) -> list[str]:
    """Make the runs that are missing; the failures."""
    failures = []
    began, traces, windows = time.monotonic(), 0, 0
    for count, outcome in enumerate(build(settings, processes), start=1):
        traces, windows = traces + outcome.traces, windows + outcome.windows
        if outcome.failure:
            failures.append(outcome.failure)
            print(f"run {outcome.number} failed: {outcome.failure}", flush=True)
        if count % SAY_EVERY == 0:
            spent_s = time.monotonic() - began
            print(f"{count} runs, {traces} traces, {windows} windows; {spent_s / count:.2f} s a run", flush=True)
    return failures


if __name__ == "__main__":
    raise SystemExit(main())
