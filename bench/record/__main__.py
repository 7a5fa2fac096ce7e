"""What recording costs the recorded program. Run as `python -m bench.record`; it needs torch and some minutes.

Each program runs once under `torchtraceap record`. Steps with no profiler and light ones take turns, so that both meet
the same machine: `light_overhead_pct` is the median, over the turns, of the ratio of their medians. The full steps
come first, in one stretch; `full_overhead_pct` compares their median with that of all plain ones. `whole_run_pct` is
how much longer the whole program took than alone, with all that is written.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from torchtraceap.analyzer.trace.recording import Recording, read_recording
from torchtraceap.codemap.record.phases import LIGHT_WINDOW, PLAIN_WINDOW

from ..results import Figure, Target, publish

PROGRAMS = ("cnn_training", "vit_training", "cnn_inference", "vit_inference")
ITERATIONS = 100
STEPS = 170
"""Enough for warm-up, the full steps and all turns."""
TARGETS = {"light_overhead_pct": Target(at_most=5.0)}
_PROGRAM = Path(__file__).with_name("program.py")
_MAIN = "from torchtraceap.server.cli import main; main()"
_TIMEOUT_S = 900


def main() -> int:
    """Measure, publish, and answer 0 if every target is met."""
    figures = [figure for name in PROGRAMS for figure in _measured(name)]
    notes = (
        f"{ITERATIONS} light steps per program, in turns of {LIGHT_WINDOW} with {PLAIN_WINDOW} plain ones; one thread",
    )
    return 0 if publish("record", figures, targets=TARGETS, packages=("torch",), notes=notes) else 1


def _measured(name: str) -> Iterable[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, str(_PROGRAM), name, str(STEPS)]
        options = ["-o", folder, "--name", name, "--iterations", str(ITERATIONS)]
        began = time.perf_counter()
        _run([sys.executable, "-c", _MAIN, "record", *options, "--", *words])
        recorded_s = time.perf_counter() - began
        trace = Path(folder, f"{name}.pt.trace.json.gz")
        recording, problem = read_recording(trace)
        if recording is None:
            raise RuntimeError(problem)
        sizes = trace.stat().st_size, sum(path.stat().st_size for path in Path(folder).iterdir())
    yield Figure(name, "plain_step_ms", statistics.median(recording.plain_step_us) / 1e3)
    yield Figure(name, "light_overhead_pct", _light_overhead_pct(recording))
    plain = statistics.median(recording.plain_step_us)
    yield Figure(name, "full_overhead_pct", 100 * (statistics.median(recording.full_step_us) / plain - 1))
    began = time.perf_counter()
    _run(words)
    yield Figure(name, "whole_run_pct", 100 * (recorded_s / (time.perf_counter() - began) - 1))
    yield Figure(name, "trace_mib", sizes[0] / 2**20)
    yield Figure(name, "all_files_mib", sizes[1] / 2**20)


def _light_overhead_pct(recording: Recording) -> float:
    pairs = zip(
        _turns(recording.plain_step_us, PLAIN_WINDOW), _turns(recording.light_step_us, LIGHT_WINDOW), strict=False
    )
    return 100 * (statistics.median(statistics.median(light) / statistics.median(plain) for plain, light in pairs) - 1)


def _turns(times: Sequence[float], size: int) -> list[Sequence[float]]:
    return [times[i : i + size] for i in range(0, len(times), size)]


def _run(words: Sequence[str]) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(words, check=True, env=environment, timeout=_TIMEOUT_S, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
