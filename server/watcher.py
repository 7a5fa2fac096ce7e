"""Watches the folders where profilers write, and the Python files beside them.

The operating system's events only say where to look. A trace is reported once its size and time have been still for a
moment and it looks complete. Known trace folders are looked through again every few seconds, since network file systems
send no events, and systems run out of watches.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pathspec
from watchdog import events
from watchdog.observers import Observer
from watchdog.observers.api import ObservedWatch

from ..analyzer.trace.recording import is_trace_name
from ..codemap.walk import IGNORED_FOLDERS, SUFFIXES

CHANGES: list[type[events.FileSystemEvent]] = [
    events.FileCreatedEvent,
    events.FileModifiedEvent,
    events.FileClosedEvent,
    events.FileMovedEvent,
    events.FileDeletedEvent,
    events.DirCreatedEvent,
    events.DirMovedEvent,
    events.DirDeletedEvent,
]
TICK_S = 0.05
STILL_S = 0.15
"""A file that has not changed for so long and looks complete is taken."""
GIVE_UP_S = 10.0
"""A file that has not changed for so long is taken even if it looks incomplete: its writer has died."""
SWEEP_EVERY_S = 5.0
MAX_FOLDERS = 50_000
"""The first look stops after so many folders."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told, in the watcher's thread."""

    on_existing: Callable[[list[tuple[Path, int]]], None]
    """The traces that were there at start, newest first, and their modification times in ns. Called once."""
    on_trace: Callable[[Path, int], None]
    """A trace is complete; with its modification time in ns."""
    on_trace_deleted: Callable[[Path], None]
    on_source: Callable[[Path], None]
    """A Python file was written, created or deleted."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when a file is written."""

    size: int
    modified_ns: int


@dataclass(slots=True)
class Pending:
    """A file that is being waited for."""

    stamp: Stamp
    since_s: float


class TraceFolders:
    """Which files are traces: patterns as in .gitignore below `root`, or absolute or ~ paths of folders."""

    def __init__(self, root: Path, patterns: tuple[str, ...]) -> None:
        self.root = root
        far = [pattern for pattern in patterns if pattern.startswith("~") or Path(pattern).is_absolute()]
        self.outside = tuple(Path(pattern).expanduser().resolve() for pattern in far)
        """Folders given by their absolute path."""
        self.holding: set[Path] = set(self.outside)
        """Folders in which traces were found or would be."""
        self._spec = pathspec.GitIgnoreSpec.from_lines(pattern for pattern in patterns if pattern not in far)

    def is_trace(self, path: Path) -> bool:
        """Whether a file with this name in this place is a trace."""
        if not is_trace_name(path.name) or path.name.startswith("."):
            return False
        if any(path.is_relative_to(folder) for folder in self.outside):
            return True
        return path.is_relative_to(self.root) and self._spec.match_file(path.relative_to(self.root).as_posix())

    def existing(self) -> list[tuple[Path, Stamp]]:
        """All traces that are there now, the newest first."""
        starts = (self.root, *self.outside)
        found = {path: stamp for start in starts for path in self.traces_below(start) if (stamp := _stamp(path))}
        return sorted(found.items(), key=lambda item: -item[1].modified_ns)

    def traces_below(self, start: Path) -> Iterator[Path]:
        """Traces in a folder and below, adding to `holding`. Links to folders lead in once."""
        entered: set[str] = set()
        for count, (folder, names, files) in enumerate(os.walk(start, followlinks=True)):
            real = os.path.realpath(folder)
            if real in entered or count >= MAX_FOLDERS:
                names.clear()
                continue
            entered.add(real)
            here = Path(folder)
            names[:] = [name for name in names if not _is_ignored(here / name) and self._may_enter(here / name)]
            found = [here / name for name in files if self.is_trace(here / name)]
            if found or self.holds_traces(here):
                self.holding.add(here)
            yield from found

    def _may_enter(self, folder: Path) -> bool:
        """Links are followed only where traces are: a data set behind a link may be endless."""
        return not folder.is_symlink() or self.holds_traces(folder)

    def holds_traces(self, folder: Path) -> bool:
        """Whether any .json file in a folder of this name would be a trace."""
        return self.is_trace(folder / "any.json")


class Watcher:
    """Watches one workspace folder, in threads of its own, until stopped."""

    def __init__(self, folders: TraceFolders, listener: Listener, is_complete: Callable[[Path], bool]) -> None:
        self._folders = folders
        self._listener = listener
        self._is_complete = is_complete
        self._known: dict[Path, Stamp] = {}
        self._pending: dict[Path, Pending] = {}
        self._hints: set[Path] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._observer = Observer()
        self._hinter = _Hinter(self.hint)
        self._watches: dict[Path, ObservedWatch] = {}
        self._thread = threading.Thread(target=self._run, name=f"watch {folders.root}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End. Returns at once; a last report may still arrive."""
        self._stopped.set()
        self._wake.set()

    def hint(self, path: str) -> None:
        """Something happened to this path."""
        with self._lock:
            self._hints.add(Path(path))
        self._wake.set()

    def _run(self) -> None:
        self._observer.start()
        self._watch_all()
        self._listener.on_existing(self._existing())
        sweep_at_s = time.monotonic() + SWEEP_EVERY_S
        while not self._stopped.is_set():
            self._wake.wait(TICK_S if self._pending else max(sweep_at_s - time.monotonic(), TICK_S))
            self._wake.clear()
            with self._lock:
                hints, self._hints = self._hints, set()
            for path in sorted(hints):
                self._consider(path)
            if time.monotonic() >= sweep_at_s:
                self._sweep()
                sweep_at_s = time.monotonic() + SWEEP_EVERY_S
            self._settle()
        self._observer.stop()

    def _existing(self) -> list[tuple[Path, int]]:
        """The complete traces that are there now, newest first. They count as known; others are waited for."""
        found: list[tuple[Path, int]] = []
        for path, stamp in self._folders.existing():
            if self._is_complete(path):
                self._known[path] = stamp
                found.append((path, stamp.modified_ns))
            else:
                self._notice(path)
        return found

    def _watch_all(self) -> None:
        """Watch the root itself and, recursively, each folder in it that is not ignored: heavy ones cost too much."""
        self._watch(self._folders.root, is_recursive=False)
        for folder in (*self._folders.outside, *_children(self._folders.root)):
            self._watch(folder, is_recursive=True)

    def _watch(self, folder: Path, is_recursive: bool) -> None:
        if (old := self._watches.pop(folder, None)) is not None:  # of a folder deleted since
            self._observer.unschedule(old)
        try:
            target = str(folder.resolve()) if folder.is_symlink() else str(folder)
            watch = self._observer.schedule(self._hinter, target, recursive=is_recursive, event_filter=CHANGES)
            self._watches[folder] = watch
        except OSError as error:
            log.warning("%s cannot be watched (%s); it is looked through every %g s", folder, error, SWEEP_EVERY_S)

    def _consider(self, path: Path) -> None:
        if path.suffix in SUFFIXES:
            self._listener.on_source(path)
        elif path.is_dir():
            self._enter(path)
        elif self._folders.is_trace(path):
            self._folders.holding.add(path.parent)
            self._notice(path)
        elif not path.exists():
            for known in [known for known in self._known if known.is_relative_to(path)]:
                self._notice(known)

    def _enter(self, folder: Path) -> None:
        """A folder was made or moved here."""
        if folder.parent == self._folders.root and not _is_ignored(folder):
            self._watch(folder, is_recursive=True)
        for path in self._folders.traces_below(folder):
            self._notice(path)

    def _notice(self, path: Path) -> None:
        """Wait for a file if it is new or changed; report it if it has gone."""
        stamp = _stamp(path)
        if stamp is None:
            self._pending.pop(path, None)
            if self._known.pop(path, None):
                self._listener.on_trace_deleted(path)
        elif self._known.get(path) != stamp:
            waiting = self._pending.get(path)
            if waiting is None or waiting.stamp != stamp:
                self._pending[path] = Pending(stamp, time.monotonic())

    def _settle(self) -> None:
        """Report the pending files that have come to rest."""
        for path in list(self._pending):
            self._notice(path)
            waiting = self._pending.get(path)
            if waiting is None:
                continue
            still_s = time.monotonic() - waiting.since_s
            if still_s >= STILL_S and (still_s >= GIVE_UP_S or self._is_complete(path)):
                del self._pending[path]
                self._known[path] = waiting.stamp
                self._listener.on_trace(path, waiting.stamp.modified_ns)

    def _sweep(self) -> None:
        """Look at all known traces and trace folders."""
        for path in [
            *self._known,
            *(p for folder in list(self._folders.holding) for p in self._folders.traces_below(folder)),
        ]:
            self._notice(path)


class _Hinter(events.FileSystemEventHandler):
    """Passes on the paths of events."""

    def __init__(self, hint: Callable[[str], None]) -> None:
        self._hint = hint

    def on_any_event(self, event: events.FileSystemEvent) -> None:
        """Called by watchdog in its own thread."""
        for path in (event.src_path, event.dest_path):
            if path:
                self._hint(os.fsdecode(path))


def _children(folder: Path) -> list[Path]:
    try:
        return [child for child in folder.iterdir() if child.is_dir() and not _is_ignored(child)]
    except OSError:
        return []


def _is_ignored(folder: Path) -> bool:
    name = folder.name
    return name.startswith(".") or name in IGNORED_FOLDERS or (folder / "pyvenv.cfg").exists()


def _stamp(path: Path) -> Stamp | None:
    """None where there is no regular file: opening a pipe would wait for its writer."""
    try:
        info = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(info.st_mode):
        return None
    return Stamp(info.st_size, info.st_mtime_ns)
