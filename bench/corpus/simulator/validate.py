"""Compares simulated with real traces of the same run on the same device.

From a real trace the device's events are taken out, and the host's waits cut out; what stays is a recording as the
simulator wants it. The run is simulated for the device that it ran on, and every operator's device time compared.
"""

from __future__ import annotations

import gzip
import re
import statistics
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
from msgspec import UNSET, UnsetType

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.intervals import covered_ns, union
from torchtraceap.analyzer.timeline.model import KernelClass, Timeline
from torchtraceap.analyzer.trace.model import NONE, Category
from torchtraceap.analyzer.trace.read import read_trace

from ..marks import ACT
from .clock import Pace
from .document import Args, Document, Event, parse, serialize
from .hardware import Hardware
from .settings import JobSettings
from .simulate import document_of, simulate_events

SEEDS = (1, 2, 3)
_HOST = frozenset(("cpu_op", "user_annotation", "python_function", "cpu_instant_event"))
_RUNTIME = frozenset(("cuda_runtime", "cuda_driver", "runtime"))
_SYNC = re.compile(r"(Device|Stream|Event)Synchronize$")
_COLLECTIVE = re.compile(r"^nccl:(all_?reduce|broadcast)")
_EXCHANGES = re.compile(r"^(c10d::|record_param_comms)")
_LIBRARY = re.compile(r"^aten::(cudnn|miopen)_batch_norm")
_COMPUTE = {kind for kind in KernelClass if kind < KernelClass.COMMUNICATION}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One kind of work, real against simulated."""

    kind: str
    """A kernel class, or an operator."""
    count: int
    real_us: float
    simulated_us: float
    median_ratio: float
    """Median, over operator calls, of simulated by real device time."""
    held_out: bool
    """Whether the model was calibrated without these calls."""

    @property
    def total_ratio(self) -> float:
        """Simulated by real time of all calls together."""
        return self.simulated_us / self.real_us if self.real_us else float("nan")


@dataclass(frozen=True, slots=True)
class Validation:
    """One real trace against its simulation."""

    trace: str
    device: str
    real_idle_pct: float
    """Of the device, communication counted as idle: how long ranks wait for each other is no matter of the device."""
    simulated_idle_pct: float
    real_step_us: float
    simulated_step_us: float
    real_kernels: int
    simulated_kernels: int
    operators: tuple[Comparison, ...]


def validate(path: Path, hardware: Hardware, settings: JobSettings) -> Validation:
    """Simulate the host run of a real trace on the device that it came from, and compare."""
    text = path.read_bytes()
    document = parse(gzip.decompress(text) if path.suffix == ".gz" else text)
    real = build_timeline(read_trace(path))
    host = host_only(document)
    simulated = [_simulated(document, host, hardware, settings, seed) for seed in SEEDS]
    return Validation(
        trace=path.name,
        device=hardware.name,
        real_idle_pct=_idle_pct(real),
        simulated_idle_pct=statistics.median(map(_idle_pct, simulated)),
        real_step_us=real.breakdown.step_us,
        simulated_step_us=statistics.median(one.breakdown.step_us for one in simulated),
        real_kernels=len(real.trace.rows(Category.KERNEL)),
        simulated_kernels=len(simulated[0].trace.rows(Category.KERNEL)),
        operators=tuple(_compare(_device_us(real), [_device_us(one) for one in simulated])),
    )


def _simulated(document: Document, host: list[Event], hardware: Hardware, settings: JobSettings, seed: int) -> Timeline:
    events = simulate_events(host, hardware, settings, seed, Pace())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "simulated.json"
        path.write_bytes(serialize(document_of(document, events, hardware, settings)))
        return build_timeline(read_trace(path))


# From a real trace to a recording


def host_only(document: Document) -> list[Event]:
    """The host's events on one thread, without waits; what it asked of the device besides computing as acts."""
    operators = [event for event in document.events if event.cat == "cpu_op" and event.ph == "X"]
    thread = (operators[0].pid, operators[0].tid)
    acts = _acts(document.events)
    host = []
    for event in document.events:
        is_flow = event.cat == "fwdbwd"
        if not is_flow and (event.cat not in _HOST or event.ph == "M"):
            continue
        if _EXCHANGES.match(event.name) or _COLLECTIVE.match(event.name):
            continue
        name = _LIBRARY.sub("aten::native_batch_norm", event.name)
        host.append(
            Event(event.ph, name, event.cat, *thread, event.ts, event.dur, event.id, event.s, event.bp, event.args)
        )
    for name, start, duration in acts:
        host.append(Event("X", ACT + name, "user_annotation", *thread, start, duration, args=Args(external_id=0)))
    return _without_waits(host, document.events)


def _acts(events: list[Event]) -> list[tuple[str, float, float]]:
    """(act, start, length) of copies between host and device, of waits for the whole device, and of collectives."""
    copies = _copy_directions(events)
    acts = []
    for event in events:
        if event.ph != "X" or isinstance(event.ts, UnsetType) or isinstance(event.dur, UnsetType):
            continue
        args = event.args
        if event.cat in _RUNTIME and event.name.endswith("DeviceSynchronize"):
            acts.append(("synchronize", event.ts, 0.0))
        elif _COLLECTIVE.match(event.name) and event.cat == "user_annotation" and isinstance(args, Args):
            kind = "broadcast" if "broadcast" in event.name else "allreduce"
            acts.append((f"{kind} bytes={_bytes(args)} async=1", event.ts, 0.0))
        elif event.name == "aten::copy_" and isinstance(args, Args) and args.external_id in copies:
            acts.append((copies[args.external_id], event.ts, event.dur))
    return acts


def _copy_directions(events: list[Event]) -> dict[object, str]:
    """The act of each operator (external id) that copied between host and device."""
    found: dict[object, str] = {}
    for event in events:
        if event.cat != "gpu_memcpy" or not isinstance(event.args, Args):
            continue
        pinned = int("Pinned" in event.name)
        if "HtoD" in event.name:
            found[event.args.external_id] = f"htod pinned={pinned} blocking=0"
        elif "DtoH" in event.name:
            found[event.args.external_id] = f"dtoh pinned={pinned} blocking=1"
    found.pop(UNSET, None)
    return found


def _bytes(args: Args) -> int:
    numbers = re.findall(rb"\d+", bytes(args.dims)) if not isinstance(args.dims, UnsetType) else []
    half = not isinstance(args.types, UnsetType) and b"Float16" in bytes(args.types)
    return int(np.prod([int(number) for number in numbers] or [0])) * (2 if half else 4)


def _without_waits(host: list[Event], events: list[Event]) -> list[Event]:
    """The host's events as if no synchronising call had taken any time."""
    waits = [event for event in events if event.cat in _RUNTIME and _SYNC.search(event.name) and event.ph == "X"]
    if not waits:
        return host
    start = _ns([event.ts for event in waits])
    spans = union(start, start + _ns([event.dur for event in waits]))
    begins = _ns([event.ts for event in host])
    ends = begins + _ns([event.dur for event in host])
    origin = np.full_like(begins, spans.start_ns[0])
    begins -= covered_ns(spans, origin, begins)
    ends -= covered_ns(spans, origin, ends)
    for event, begin, end in zip(host, begins.tolist(), ends.tolist(), strict=True):
        event.ts = begin / 1000
        if not isinstance(event.dur, UnsetType):
            event.dur = (end - begin) / 1000
    return host


def _ns(times_us: list[int | float | UnsetType]) -> np.ndarray:
    known = [0.0 if isinstance(time, UnsetType) else time for time in times_us]
    return np.rint(np.array(known, dtype=np.float64) * 1000).astype(np.int64)


# Comparing


def _idle_pct(timeline: Timeline) -> float:
    rows = timeline.device_rows
    rows = rows[timeline.kernel_class[rows] != KernelClass.COMMUNICATION]
    start, end = timeline.trace.ts_ns[rows], timeline.trace.end_ns[rows]
    busy = union(start, end)
    return 100.0 * (1.0 - float((busy.end_ns - busy.start_ns).sum()) / float(end.max() - start.min()))


def _device_us(timeline: Timeline) -> dict[int, tuple[str, KernelClass, float, int]]:
    """External id of each outermost `aten` operator that computed -> its name, main class, device time and shape."""
    trace = timeline.trace
    rows = trace.rows(Category.KERNEL)
    outermost = _outermost(timeline)
    spent: dict[int, float] = defaultdict(float)
    by_class: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows.tolist():
        kind = KernelClass(int(timeline.kernel_class[row]))
        host = int(timeline.launches.op[row])
        if host == NONE or kind not in _COMPUTE or (host := outermost[host]) == NONE:
            continue
        time = float(trace.dur_ns[row]) / 1e3
        spent[host] += time
        by_class[host][kind] += time
    found = {}
    for host, time in spent.items():
        main = max(by_class[host].items(), key=lambda item: item[1])[0]
        shape = crc32(str(trace.inputs_of(host).dims).encode())
        found[int(trace.external_id[host])] = trace.name_of(host), KernelClass(main), time, shape
    return found


def _outermost(timeline: Timeline) -> np.ndarray:
    """Of each host row the outermost `aten` operator round it; NONE where there is none."""
    trace, tree = timeline.trace, timeline.tree
    is_aten = np.array([name.startswith("aten::") for name in trace.names])[trace.name]
    found = np.full(len(trace), NONE, dtype=np.int64)
    for row in np.lexsort((-trace.dur_ns, trace.ts_ns)).tolist():
        parent = int(tree.parent[row])
        above = found[parent] if parent != NONE else NONE
        found[row] = above if above != NONE else row if is_aten[row] else NONE
    return found


Calls = dict[int, tuple[str, KernelClass, float, int]]


def _compare(real: Calls, simulated: list[Calls]) -> list[Comparison]:
    groups: dict[tuple[str, bool], list[tuple[float, float]]] = defaultdict(list)
    for identity, (name, kind, time, shape) in real.items():
        ours = [one[identity][2] for one in simulated if identity in one]
        for group in (name, f"class {kind.name}"):
            groups[group, bool(shape % 2)].append((time, statistics.median(ours) if ours else 0.0))
    found = []
    for (kind, held_out), pairs in sorted(groups.items()):
        ratios = [ours / time for time, ours in pairs if time > 0]
        found.append(
            Comparison(
                kind=kind,
                count=len(pairs),
                real_us=sum(time for time, _ in pairs),
                simulated_us=sum(ours for _, ours in pairs),
                median_ratio=statistics.median(ratios) if ratios else float("nan"),
                held_out=held_out,
            )
        )
    return found
