"""What is known of a workspace's past: its repository, what was kept of earlier analyses, when files were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from .disk import inside
from .drift_store import SourceStore
from .git import Repository, open_repository


@dataclass(frozen=True, slots=True)
class Version:
    """A text that a file once had."""

    text: str
    origin: str
    """In words, where it comes from: "commit 1a2b3c4d"."""


class History:
    """The past of the folder `root`, for the traces `traces` of one analysis."""

    def __init__(
        self, root: Path, traces: Iterable[Path] = (), store: SourceStore | None = None, recorded_ns: int = 0
    ) -> None:
        self._root = root.resolve()
        self._traces = [Path(trace) for trace in traces]
        self._store = store
        self._repository: Repository | None = None
        self._is_open = False
        self._ran: dict[str, str] = {}
        self._seen: Mapping[str, str] | None = None
        self.recorded_ns = recorded_ns
        """When the trace was written (unix, ns); 0 if unknown. Where the trace itself tells a time, that counts."""

    def texts(self, blobs: Iterable[str]) -> Mapping[str, str]:
        """The texts of those of `blobs` (git's hashes) that are known."""
        wanted = list(blobs)
        found = {b: text for b in wanted if self._store is not None and (text := self._store.text(b)) is not None}
        missing = [blob for blob in wanted if blob not in found]
        repository = self.repository if missing else None
        return {**found, **(repository.texts(missing) if repository is not None else {})}

    def seen(self, path: str) -> Version | None:
        """The file's text when the trace was first placed; None if that was not here."""
        blob = self._first_seen().get(path)
        text = self._store.text(blob) if self._store is not None and blob is not None else None
        return None if text is None else Version(text, "as it was when the trace was first analysed")

    def seen_files(self) -> frozenset[str]:
        """The files that the trace ran when it was first placed."""
        return frozenset(self._first_seen())

    def _first_seen(self) -> Mapping[str, str]:
        if self._seen is None:
            known = (
                [self._store.sources_of(trace, self._root) for trace in self._traces] if self._store is not None else []
            )
            self._seen = {path: blob for sources in known for path, blob in sources.items()}
        return self._seen

    def versions(self, path: str, time_ns: int) -> tuple[Version, ...]:
        """The file's text in the commit that was checked out at a time, and in the first one made after it."""
        repository = self.repository
        if repository is None:
            return ()
        commits = [commit for commit in (repository.commit_at(time_ns), repository.commit_after(time_ns)) if commit]
        blobs = {commit: blob for commit in commits if (blob := repository.files(commit).get(path))}
        texts = repository.texts(blobs.values())
        return tuple(Version(texts[blob], f"commit {commit[:8]}") for commit, blob in blobs.items() if blob in texts)

    def files_at(self, time_ns: int) -> frozenset[str]:
        """The Python files of the commits that `versions` looks at."""
        repository = self.repository
        if repository is None:
            return frozenset()
        commits = (repository.commit_at(time_ns), repository.commit_after(time_ns))
        return frozenset(path for commit in commits if commit for path in repository.files(commit))

    def files_of(self, blob: str) -> tuple[str, ...]:
        """The files of the commit that is checked out now which have this content."""
        head = self.repository.head() if self.repository is not None else None
        files = self.repository.files(head) if self.repository is not None and head else {}
        return tuple(path for path, other in files.items() if other == blob)

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

    @property
    def repository(self) -> Repository | None:
        """The repository round the folder."""
        if not self._is_open:
            self._is_open = True
            self._repository = open_repository(self._root)
        return self._repository


def open_history(root: Path, traces: Iterable[Path]) -> History:
    """The past of a folder by its repository and the user's cache, for the traces of one analysis."""
    paths = [Path(trace) for trace in traces]
    store = SourceStore(platformdirs.user_cache_path("torchtraceap") / "sources")
    try:
        recorded_ns = paths[0].stat().st_mtime_ns if paths else 0
    except OSError:
        recorded_ns = 0
    return History(root, paths, store, recorded_ns)
