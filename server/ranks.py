"""Which trace files are the ranks of one job: by what the files say of it, their names and their times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..analyzer.detected import Analysis
from ..analyzer.timeline.rank_names import name_without_rank, rank_in_name, time_in_name_ns
from ..analyzer.trace.model import NONE, Distributed
from ..analyzer.trace.peek import peek_distributed

_APART_NS = 10 * 60 * 10**9
"""Files of one job are written within this time of one another: the profiler writes all ranks' at the same step."""
_HANDLER = re.compile(r".*_\d+\.\d{13,19}\.pt\.trace\.json(\.gz)?$")
"""What `tensorboard_trace_handler` calls its files: the host and the process differ between ranks."""
_SURE_WORD = re.compile(r"(?i)rank[-_.=]?\d")


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    rank: int
    world_size: int
    written_ns: int
    is_told: bool
    """The file itself says which rank it is, not only its name."""


def group_ranks(paths: Sequence[Path]) -> list[tuple[Path, ...]]:
    """The paths, those of one job together in order of rank; each other one by itself. In order of the first of each.

    A file that cannot be read still has a name: it belongs to the job whose files are called like it.
    """
    groups: dict[object, list[_File]] = {}
    for path in paths:
        said = peek_distributed(path)
        groups.setdefault(_key(path, said), []).append(_file(path, said))
    found = [job for files in groups.values() for job in _jobs(files)]
    place = {path: i for i, path in enumerate(paths)}
    return sorted(found, key=lambda job: min(place[path] for path in job))


def ranks_beside(path: Path) -> tuple[Path, ...]:
    """The files of the job that a trace belongs to, itself included, among those that lie beside it."""
    if rank_in_name(path.name) != NONE or _HANDLER.match(path.name):
        beside = [one for one in path.parent.iterdir() if _is_called_alike(one, path)]
    elif rank_in_name(str(path)) != NONE:
        beside = [one for one in path.parent.parent.glob("*/*") if _is_called_alike(one, path)]
    else:
        return (path,)
    return next((job for job in group_ranks(sorted(beside)) if path in job), (path,))


def is_only_called_a_job(analysis: Analysis) -> bool:
    """Whether traces whose names speak of ranks, and no more, turn out to have no collective in common."""
    timeline = analysis.timeline
    return timeline.job is not None and timeline.trace.info.distributed is None and not len(timeline.job.step)


def _is_called_alike(one: Path, other: Path) -> bool:
    are_handlers = _HANDLER.match(one.name) and _HANDLER.match(other.name)
    return bool(are_handlers) or name_without_rank(str(one)) == name_without_rank(str(other))


def _key(path: Path, said: Distributed | None) -> object:
    """Equal for files that may be of one job."""
    if rank_in_name(str(path)) != NONE:
        return name_without_rank(str(path))
    if said is None:
        return path
    if _HANDLER.match(path.name):
        return (path.parent, said.backend, said.world_size)
    number = re.compile(rf"(?<!\d)0*{said.rank}(?!\d)")
    return (path.parent, number.sub("#", path.name, count=1))


def _file(path: Path, said: Distributed | None) -> _File:
    named, written_ns = rank_in_name(str(path)), time_in_name_ns(str(path))
    if written_ns == NONE:
        written_ns = path.stat().st_mtime_ns if path.exists() else 0
    rank, world_size = (said.rank, said.world_size) if said is not None else (NONE, NONE)
    return _File(path, named if rank == NONE else rank, world_size, written_ns, rank != NONE)


def _jobs(files: Sequence[_File]) -> Iterator[tuple[Path, ...]]:
    """Files called alike, parted into jobs: each rank once, all written at about the same time."""
    is_job = any(file.is_told for file in files) or all(_SURE_WORD.search(str(file.path)) for file in files)
    ranked = [file for file in files if file.rank != NONE and is_job and file.world_size != 1]
    yield from ((file.path,) for file in files if file not in ranked)
    current: list[_File] = []
    for file in sorted(ranked, key=lambda file: (file.written_ns, file.rank)):
        if current and not _belongs(file, current):
            yield _in_order(current)
            current = []
        current.append(file)
    if current:
        yield _in_order(current)


def _belongs(file: _File, job: Sequence[_File]) -> bool:
    sizes = {one.world_size for one in (*job, file)} - {NONE}
    is_new = all(one.rank != file.rank for one in job)
    return is_new and len(sizes) < 2 and file.written_ns - job[-1].written_ns <= _APART_NS


def _in_order(job: Sequence[_File]) -> tuple[Path, ...]:
    return tuple(file.path for file in sorted(job, key=lambda file: file.rank))
