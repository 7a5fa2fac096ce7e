"""What recording costs the recorded program. Run as `python -m bench.record`; it needs torch and some minutes.

Each program runs once under `torchtraceap record`. Steps with no profiler and light ones take turns, so that both meet
the same machine: `light_overhead_pct` is the median, over the turns, of the ratio of their medians, by the clock, and
`light_cpu_overhead_pct` the same in processor time, which other programs on the machine disturb less. The full steps
come first, in one stretch; `full_overhead_pct` and `full_cpu_overhead_pct` compare their median with that of all plain
ones.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchtraceap.analyzer.trace.recording import Recording, read_recording
from torchtraceap.codemap.record.phases import LIGHT_WINDOW, PLAIN_WINDOW, Phase, blocks

from ..results import Figure, Target, publish

PROGRAMS = ("cnn_training", "vit_training", "cnn_inference", "vit_inference")
ITERATIONS = 100
STEPS = 180
"""Enough for warm-up, the full steps and all turns."""
TARGETS = {"light_overhead_pct": Target(at_most=5.0), "light_cpu_overhead_pct": Target(at_most=5.0)}
_PROGRAM = Path(__file__).with_name("program.py")
_MAIN = "from torchtraceap.server.cli import main; main()"
_TIMEOUT_S = 900


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, publish, and answer 0 if every target is met."""
    argparse.ArgumentParser(prog="python -m bench.record", description=__doc__).parse_args(arguments)
    figures = [figure for name in PROGRAMS for figure in _measured(name)]
    notes = (
        f"{ITERATIONS} light steps per program, in turns of {LIGHT_WINDOW} with {PLAIN_WINDOW} plain ones; one thread",
        f"load of the machine at the end: {os.getloadavg()[0]:.1f}; above its cores the clock's figures mostly show it",
    )
    return 0 if publish("record", figures, targets=TARGETS, packages=("torch",), notes=notes) else 1


def _measured(name: str) -> Iterable[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, str(_PROGRAM), name, str(STEPS)]
        options = ["-o", folder, "--name", name, "--iterations", str(ITERATIONS)]
        cpu_ms = _run([sys.executable, "-c", _MAIN, "record", *options, "--", *words])
        trace = Path(folder, f"{name}.pt.trace.json.gz")
        recording, problem = read_recording(trace)
        if recording is None:
            raise RuntimeError(problem)
        sizes = trace.stat().st_size, sum(path.stat().st_size for path in Path(folder).iterdir())
    clock = _Times(recording.plain_step_us, recording.light_step_us, recording.full_step_us)
    processor = _by_phase(cpu_ms, recording)
    yield Figure(name, "plain_step_ms", statistics.median(clock.plain) / 1e3)
    yield Figure(name, "light_overhead_pct", clock.light_overhead_pct())
    yield Figure(name, "light_cpu_overhead_pct", processor.light_overhead_pct())
    yield Figure(name, "full_overhead_pct", clock.full_overhead_pct())
    yield Figure(name, "full_cpu_overhead_pct", processor.full_overhead_pct())
    yield Figure(name, "trace_mib", sizes[0] / 2**20)
    yield Figure(name, "all_files_mib", sizes[1] / 2**20)


@dataclass(frozen=True, slots=True)
class _Times:
    """Durations of the steps that count, in the order in which they ran."""

    plain: Sequence[float]
    light: Sequence[float]
    full: Sequence[float]

    def light_overhead_pct(self) -> float:
        pairs = zip(_turns(self.plain, PLAIN_WINDOW), _turns(self.light, LIGHT_WINDOW), strict=False)
        ratios = [statistics.median(light) / statistics.median(plain) for plain, light in pairs]
        return 100 * (statistics.median(ratios) - 1)

    def full_overhead_pct(self) -> float:
        return 100 * (statistics.median(self.full) / statistics.median(self.plain) - 1)


def _by_phase(steps: Sequence[float], recording: Recording) -> _Times:
    """The program's own figures by what its steps were used for.

    A step that ends a light or full window also bears the writing; it is given the figure of the one before it.
    """
    times: dict[Phase, list[float]] = {phase: [] for phase in Phase}
    position = recording.warm_up_steps
    for block in blocks(1, len(recording.full_step_us), ITERATIONS, []):
        part = list(steps[position : position + block.steps])
        position += block.steps
        if block.phase in (Phase.LIGHT, Phase.FULL):
            part[-1] = part[-2]
        times[block.phase] += part[0 if block.first_counts else 1 :]
    return _Times(times[Phase.PLAIN], times[Phase.LIGHT], times[Phase.FULL])


def _turns(times: Sequence[float], size: int) -> list[Sequence[float]]:
    return [times[i : i + size] for i in range(0, len(times), size)]


def _run(words: Sequence[str]) -> list[float]:
    """What the program says of its steps."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(words, check=True, env=environment, timeout=_TIMEOUT_S, stdout=subprocess.PIPE)
    return json.loads(result.stdout)


if __name__ == "__main__":
    sys.exit(main())
