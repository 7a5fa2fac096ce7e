"""What a recorded process tells the command that started it, and the sentences that say it to a person."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

_SUFFIX = ".report.json"
_LEAST_PCT = 1.0
"""Less than this cannot be told from nothing by the clock."""
ENDED_EARLY = "recording ended early: "
"""How a note on a failure of the recorder begins."""


class Report(msgspec.Struct, frozen=True):
    """How far one process came."""

    pid: int
    saw_torch: bool = False
    trace: str = ""
    """Absolute path of the trace; "" if none was written."""
    rank: int = -1
    steps_by: str = ""
    steps_seen: int = 0
    warm_up_steps: int = 0
    plain_step_us: tuple[float, ...] = ()
    light_step_us: tuple[float, ...] = ()
    full_step_us: tuple[float, ...] = ()
    stepped_aside: bool = False
    failure: str = ""
    """What ended the recording early."""
    has_ended: bool = False
    """False as long as the process had no time to say that it ends."""
    notes: tuple[str, ...] = ()


def leave(report: Report, folder: str) -> None:
    """Write the report into `folder`; nothing if that is gone."""
    path = Path(folder) / f"{report.pid}{_SUFFIX}"
    part = path.with_suffix(".part")
    try:
        part.write_bytes(msgspec.json.encode(report))
        part.replace(path)
    except OSError:
        return  # the command that asked has ended: nobody will read it


def collect(folder: Path) -> list[Report]:
    """All reports left, in order of rank; one that cannot be read counts as none."""
    found = []
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Report))
        except (OSError, msgspec.DecodeError):
            continue
    return sorted(found, key=lambda report: (report.rank, report.pid))


def sentences(report: Report, shown: str) -> Iterator[str]:
    """What to say of a process that wrote a trace; `shown` is how to name the file."""
    size = os.stat(report.trace).st_size / 2**20 if os.path.exists(report.trace) else 0.0  # noqa: PTH110, PTH116
    yield f"{shown} ({size:.1f} MiB)"
    parts = [
        f"{report.warm_up_steps} warm-up",
        f"{len(report.full_step_us)} full",
        f"{len(report.light_step_us)} light",
        f"{len(report.plain_step_us)} plain",
    ]
    ends = {"optimizer": "an optimizer's step ends each", "module": "the outermost module's call begins each"}
    yield f"steps: {', '.join(parts)} ({ends.get(report.steps_by, 'none was seen')})"
    if cost := overhead(report):
        yield cost
    yield from report.notes


def overhead(report: Report) -> str:
    """The medians side by side; "" if there is nothing to compare."""
    known = [
        (name, statistics.median(times))
        for name, times in (
            ("plain", report.plain_step_us),
            ("light", report.light_step_us),
            ("full", report.full_step_us),
        )
        if times
    ]
    if not known:
        return ""
    base = known[0][1] if known[0][0] == "plain" else 0.0
    noise_pct = _spread_pct(report.plain_step_us)
    return "one step: " + ", ".join(_one(name, value, base, noise_pct) for name, value in known)


def _spread_pct(times_us: Sequence[float]) -> float:
    """By how much the median of such steps may be off: the middle distance from it, in % of it."""
    if not times_us:
        return 0.0
    median = statistics.median(times_us)
    return 100 * statistics.median(abs(time - median) for time in times_us) / median if median else 0.0


def _one(name: str, value_us: float, base_us: float, noise_pct: float) -> str:
    text = f"{value_us / 1000:.3g} ms {name}"
    if not base_us or name == "plain":
        return text
    more_pct = 100 * (value_us / base_us - 1)
    if more_pct < max(noise_pct, _LEAST_PCT):  # a profiler makes nothing faster: less than nothing is noise, too
        return f"{text} (about nothing more)"
    return f"{text} (+{float(f'{more_pct:.2g}'):g} %)"


def problem(reports: Sequence[Report]) -> str:
    """Why there is no trace."""
    if not reports:
        return (
            "nothing was recorded: the recorder was not loaded. The command must start a Python that has torchtraceap "
            "installed, without -I, -E or -S"
        )
    if any(report.stepped_aside for report in reports):
        return "nothing was recorded: the program uses a profiler of its own, and its trace is left to it"
    if not any(report.saw_torch for report in reports):
        return "nothing was recorded: the program never imported torch"
    if failure := next((report.failure for report in reports if report.failure), ""):
        return f"nothing was recorded: {failure}"
    furthest = max(reports, key=lambda report: (report.steps_seen, report.saw_torch and report.has_ended))
    if not furthest.has_ended:
        return (
            "nothing was recorded: the program ended before the full steps were over, and left no time to write what "
            "there was (os._exit, SIGKILL, or a crash of the interpreter)"
        )
    if seen := furthest.steps_seen:
        return (
            f"nothing was recorded: the program ended after {seen} steps, while it still warmed up or was measured "
            "otherwise. Let it run longer; --warm-up 0 records from the first step"
        )
    return "nothing was recorded: no optimizer step was seen, nor a second call of the outermost module"
