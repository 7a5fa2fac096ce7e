"""One stretch of steps under torch.profiler: a full one, which becomes the trace, or a light one, for statistics."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .forks import care_for_children
from .noise import quiet


class ProfilerAtWork:
    """Whether the recorder itself is in a call of torch.profiler, so that its own profilers are told from others'."""

    def __init__(self) -> None:
        """It is not."""
        self.is_ours = False

    @contextmanager
    def ours(self) -> Iterator[None]:
        """In such a call."""
        self.is_ours = True
        try:
            with quiet():
                yield
        finally:
            self.is_ours = False


class Window:
    """A profiler that is made ready, started and stopped by the one who counts the steps."""

    def __init__(self, is_full: bool, at_work: ProfilerAtWork) -> None:
        """A full one has stacks, shapes, memory, modules and FLOPs; a light one only operators and kernels."""
        from torch.profiler import ProfilerActivity, profile, supported_activities

        wanted = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        wanted += [activity for name in ("XPU", "MTIA") if (activity := getattr(ProfilerActivity, name, None))]
        available = supported_activities()
        self._profile = profile(
            activities=[activity for activity in wanted if activity in available],
            record_shapes=is_full,
            profile_memory=is_full,
            with_stack=is_full,
            with_modules=is_full,
            with_flops=is_full,
        )
        self._at_work = at_work
        self.is_running = False
        self._is_ready = False

    def prepare(self) -> None:
        """Get ready: the first use of a device's tracing takes seconds, which no step should bear."""
        care_for_children()
        with self._at_work.ours():
            self._profile.prepare_trace()
        self._is_ready = True

    def start(self) -> None:
        """Record from here on."""
        import torch

        if not self._is_ready:
            self.prepare()
        with self._at_work.ours():
            # torch warns once of memory that is given back and was not seen taken: here, where nobody hears it.
            older = torch.empty(1)
            self._profile.start_trace()
            del older
        self.is_running = True

    def stop(self) -> None:
        """Record no more. A profiler that was only made ready is put away."""
        if not self._is_ready:
            return
        with self._at_work.ours(), in_some_folder():
            if not self.is_running:
                self._profile.start_trace()
            self._profile.stop_trace()
        self.is_running = self._is_ready = False

    @property
    def results(self) -> Any:
        """What torch holds of the recording (`_ProfilerResult`)."""
        return self._profile.profiler.kineto_results if self._profile.profiler is not None else None

    def export(self, path: Path) -> None:
        """Write the trace, uncompressed. Raises OSError or RuntimeError if that cannot be."""
        with self._at_work.ours():
            self._profile.export_chrome_trace(str(path))


@contextmanager
def in_some_folder() -> Iterator[None]:
    """Be in a folder that exists: torch asks for the working folder, which the program may have deleted."""
    try:
        Path.cwd()
    except OSError:
        pass
    else:
        yield
        return
    deleted = os.open(".", os.O_RDONLY)
    try:
        os.chdir(os.sep)
        yield
    finally:
        os.fchdir(deleted)
        os.close(deleted)


class Totals:
    """Calls and own time of operators and kernels, over light windows."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.calls: defaultdict[tuple[str, bool], int] = defaultdict(int)
        self.self_ns: defaultdict[tuple[str, bool], int] = defaultdict(int)

    def add(self, results: Any) -> None:
        """Take in what a window recorded: (name, whether on a device) is the key of both tables."""
        rows: defaultdict[tuple[bool, int], list[tuple[int, int, str]]] = defaultdict(list)
        for event in results.events():
            start, length = _times_ns(event)
            on_device = event.device_type().name != "CPU"
            line = event.device_resource_id() if on_device else event.start_thread_id()
            rows[on_device, line].append((start, -length, event.name()))
        for (on_device, _), events in rows.items():
            self._add_thread(sorted(events), on_device)

    def _add_thread(self, events: list[tuple[int, int, str]], on_device: bool) -> None:
        outer: list[tuple[int, tuple[str, bool]]] = []
        for start, minus_length, name in events:
            key = (name, on_device)
            end = start - minus_length
            while outer and outer[-1][0] <= start:
                outer.pop()
            if outer and not on_device:
                self.self_ns[outer[-1][1]] += minus_length
            self.calls[key] += 1
            self.self_ns[key] -= minus_length
            outer.append((end, key))


def _times_ns(event: Any) -> tuple[int, int]:
    if hasattr(event, "start_ns"):
        return event.start_ns(), event.duration_ns()
    return event.start_us() * 1000, event.duration_us() * 1000  # torch before 2.4
