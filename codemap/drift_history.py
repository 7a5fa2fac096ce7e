"""What is known of a workspace's past: its repository, what was kept of earlier analyses, when files were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

import platformdirs

from .disk import inside
from .drift_store import SourceStore
from .git import Repository, blob_hashes, open_repository


class History:
    """The past of the folder `root`, for the traces `traces` of one analysis."""

    def __init__(
        self, root: Path, traces: Iterable[Path] = (), store: SourceStore | None = None, recorded_ns: int = 0
    ) -> None:
        self._root = root.resolve()
        self._traces = [Path(trace) for trace in traces]
        self._store = store
        self._ran: dict[str, str] = {}
        self._commits: dict[int, tuple[str, ...]] = {}
        """By time, the commits that may have been checked out."""
        self.recorded_ns = recorded_ns
        """When the trace was written (unix, ns); 0 if unknown. Where the trace itself tells a time, that counts."""

    def texts(self, blobs: Iterable[str]) -> Mapping[str, str]:
        """The texts of those of `blobs` (git's hashes) that are known."""
        wanted = list(blobs)
        found = {b: text for b in wanted if self._store is not None and (text := self._store.text(b)) is not None}
        missing = [blob for blob in wanted if blob not in found]
        repository = self.repository if missing else None
        return {**found, **(repository.texts(missing) if repository is not None else {})}

    def seen(self, path: str) -> tuple[str, ...]:
        """The file's text when the trace was first placed; none if that was not here."""
        blob = self._first_seen.get(path)
        text = self._store.text(blob) if self._store is not None and blob is not None else None
        return () if text is None else (text,)

    def seen_files(self) -> frozenset[str]:
        """The files that the trace ran when it was first placed."""
        return frozenset(self._first_seen)

    @cached_property
    def _first_seen(self) -> Mapping[str, str]:
        store = self._store
        known = [store.sources_of(trace, self._root) for trace in self._traces] if store is not None else []
        return {path: blob for sources in known for path, blob in sources.items()}

    def versions(self, path: str, time_ns: int, today: str | None = None) -> tuple[str, ...]:
        """The file's text in the commit that was checked out at a time, and in the first one made after it; not where
        it is that of `today`."""
        repository = self.repository
        if repository is None:
            return ()
        blobs = [repository.files(commit).get(path, "") for commit in self._commits_about(time_ns)]
        known = blob_hashes(today) if today is not None and any(blobs) else ()
        texts = repository.texts(blob for blob in blobs if blob not in known)
        return tuple(texts[blob] for blob in blobs if blob in texts)

    def files_at(self, time_ns: int) -> frozenset[str]:
        """The Python files of the commits that `versions` looks at."""
        repository = self.repository
        if repository is None:
            return frozenset()
        return frozenset(path for commit in self._commits_about(time_ns) for path in repository.files(commit))

    def _commits_about(self, time_ns: int) -> tuple[str, ...]:
        repository = self.repository
        if time_ns not in self._commits and repository is not None:
            commits = (repository.commit_at(time_ns), repository.commit_after(time_ns))
            self._commits[time_ns] = tuple(commit for commit in commits if commit is not None)
        return self._commits.get(time_ns, ())

    def files_of(self, blob: str) -> tuple[str, ...]:
        """The files of the commit that is checked out now which have this content."""
        return tuple(path for path, other in self._files_now.items() if other == blob)

    @cached_property
    def _files_now(self) -> Mapping[str, str]:
        head = self.repository.head() if self.repository is not None else None
        return self.repository.files(head) if self.repository is not None and head else {}

    @cached_property
    def comes_with_trace(self) -> bool:
        """Whether the trace is part of the commit that is checked out: its sources are that commit's, not those of
        the time at which it was recorded."""
        if self.repository is None:
            return False
        inner = [one for trace in self._traces if (one := trace.resolve()).is_relative_to(self._root)]
        return any(self.repository.holds(trace.relative_to(self._root).as_posix()) for trace in inner)

    def written_ns(self, path: str) -> int:
        """When the file was last written (unix, ns); 0 if unknown."""
        real = inside(self._root, path)
        try:
            return real.stat().st_mtime_ns if real is not None else 0
        except OSError:
            return 0

    def ran(self, path: str, text: str) -> None:
        """Learn that the trace ran this text of a file."""
        self._ran[path] = text

    def keep(self) -> None:
        """Keep what was learnt for the next time, unless the trace was placed before."""
        if self._store is None or not self._ran:
            return
        for trace in self._traces:
            if not self._store.sources_of(trace, self._root):
                self._store.keep(trace, self._root, self._ran)

    @cached_property
    def repository(self) -> Repository | None:
        """The repository round the folder."""
        return open_repository(self._root)


def open_history(root: Path, traces: Iterable[Path]) -> History:
    """The past of a folder by its repository and the user's cache, for the traces of one analysis."""
    paths = [Path(trace) for trace in traces]
    store = SourceStore(platformdirs.user_cache_path("torchtraceap") / "sources")
    try:
        recorded_ns = paths[0].stat().st_mtime_ns if paths else 0
    except OSError:
        recorded_ns = 0
    return History(root, paths, store, recorded_ns)
