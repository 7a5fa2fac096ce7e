"""The facts of a whole workspace, kept up with the disk: what answers questions about thousands of files at once.

Files are read when they are new or changed, a few at a time if need be, and their texts are not kept. What is known is
stored in the user's cache, so that the next start reads only what changed since.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

from .cache import Entry, digest_of, load, store
from .disk import ReadLimits, content_of, inside, read_inside
from .facts import FileFacts, facts_of
from .walk import SUFFIXES, Listed, walk

_RACY_NS = 2_000_000_000
"""A file read so soon after its last change may change again with the same time: it is read once more later."""
_MOST_UNSAVED = 64
_STORE_SHARE = 0.02
"""So much of the workspace must have been read anew before all of it is stored again."""

OnProgress = Callable[[float], None]


class Survey:
    """The facts of the files below `root` (a real path). Not for several threads at once."""

    def __init__(self, root: Path, limits: ReadLimits | None = None, cache: Path | None = None) -> None:
        """`cache` is the file in which the facts are kept from one start to the next; None keeps them nowhere."""
        self.root = root
        self._limits = limits or ReadLimits()
        self._cache = cache
        self._entries: dict[str, Entry] | None = None
        self._listed: dict[str, Listed] = {}
        self._left: dict[str, None] = {}
        """Paths that are to be read, in order."""
        self._unstored = 0
        self._walked_s: float | None = None
        self._paths: tuple[str, ...] = ()
        self._unsaved: dict[str, tuple[str, FileFacts]] = {}
        """The last text of each file that was not the one on disk, with its facts."""

    def paths(self) -> tuple[str, ...]:
        """All files, sorted."""
        return self._paths

    @property
    def left(self) -> int:
        """How many files are to be read still."""
        return len(self._left)

    def refresh(self, max_age_s: float = 0.0) -> None:
        """Look which files there are and which of them changed, unless that was done within the last `max_age_s`."""
        now_s = time.monotonic()
        if self._walked_s is not None and now_s - self._walked_s < max_age_s:
            return
        self._walked_s = now_s
        known = self._known()
        self._listed = {each.path: each for each in itertools.islice(walk(self.root), self._limits.files)}
        paths = tuple(sorted(self._listed))
        for gone in known.keys() - self._listed.keys():
            del known[gone]
        self._left = {path: None for path in paths if not _is_current(known.get(path), self._listed[path])}
        self._paths = paths

    def read(self, within_s: float | None = None, on_progress: OnProgress | None = None) -> int:
        """Read what is left, for at most `within_s`; how many files are left then."""
        until_s = None if within_s is None else time.monotonic() + within_s
        total = max(len(self._left), 1)
        while self._left:
            self._read(next(iter(self._left)))
            if on_progress is not None:
                on_progress(1.0 - len(self._left) / total)
            if until_s is not None and time.monotonic() >= until_s:
                break
        return len(self._left)

    def update(self, path: str) -> None:
        """One file was written, made or deleted."""
        real = inside(self.root, path)
        if self._walked_s is None or real is None or not path.endswith(SUFFIXES):
            return
        if path not in self._listed:
            # Whether it is the project's own only the walk can tell: the next one does.
            self._walked_s = self._walked_s if not real.exists() else None
            return
        try:
            info = real.stat()
        except OSError:
            self._known().pop(path, None)
            self._listed.pop(path, None)
            self._left.pop(path, None)
            self._paths = tuple(each for each in self._paths if each != path)
            return
        self._listed[path] = Listed(path, info.st_size, info.st_mtime_ns)
        if not _is_current(self._known().get(path), self._listed[path]):
            self._read(path)

    def facts(self, path: str) -> FileFacts | None:
        """The facts of a file, read now if it is not yet; None for one that is not of the workspace."""
        if path not in self._listed:
            return None
        if path in self._left:
            self._read(path)
        return self._known()[path].facts

    def facts_of_unsaved(self, path: str, text: str) -> FileFacts:
        """The facts of a text that an editor holds, found anew only where it is not the last one of this path."""
        known = self._unsaved.pop(path, None)
        if known is None or known[0] != text:
            known = (text, facts_of(text))
        self._unsaved[path] = known  # the one used last comes last
        if len(self._unsaved) > _MOST_UNSAVED:
            del self._unsaved[next(iter(self._unsaved))]
        return known[1]

    def where(self, wanted: Callable[[FileFacts], bool]) -> list[str]:
        """The paths, sorted, of the files whose facts are wanted. Reads what is left."""
        self.read()
        known = self._known()
        return [path for path in self._paths if wanted(known[path].facts)]

    def save(self) -> bool:
        """Store the facts for the next start, where enough of them are new; whether it was done."""
        if self._cache is None or self._left or self._unstored <= _STORE_SHARE * len(self._listed):
            return False
        self._unstored = 0
        return store(self._cache, self._known())

    def _known(self) -> dict[str, Entry]:
        if self._entries is None:
            self._entries = {} if self._cache is None else load(self._cache)
        return self._entries

    def _read(self, path: str) -> None:
        self._left.pop(path, None)
        known, listed = self._known(), self._listed[path]
        read_ns = time.time_ns()
        data = read_inside(self.root, path, self._limits) or b""
        digest = digest_of(data)
        old = known.get(path)
        if old is not None and old.digest == digest:
            facts = old.facts
        else:
            facts = facts_of(content_of(path, data).text)
            self._unstored += 1
        known[path] = Entry(listed.size, listed.mtime_ns, read_ns, digest, facts)


def _is_current(entry: Entry | None, listed: Listed) -> bool:
    if entry is None or (entry.size, entry.mtime_ns) != (listed.size, listed.mtime_ns):
        return False
    return abs(entry.read_ns - listed.mtime_ns) > _RACY_NS
