"""Files as a trace names them, matched to files of the workspace.

A recorded path may be absolute on another machine, or cut at an entry of `sys.path`. It is matched by its longest
common ending with a workspace path, and only to a file whose functions are the recorded ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from .cells import match_cells
from .codes import Codes
from .git import blob_hashes
from .labels import Label
from .matched import Matched
from .workspace import Workspace

CodesOf = Callable[[str], Codes]
"""The code objects of a workspace file."""

_LEAST_NAMES = 0.5
"""Share of the recorded functions that a file must have to be the recorded one."""


def match_paths(frames: Iterable[Label], workspace: Workspace, codes: CodesOf) -> Mapping[str, Matched]:
    """Recorded path -> workspace file, for every path of `frames` (labels of kind FRAME) that has one."""
    by_owner: dict[str, list[Label]] = {}
    for label in frames:
        by_owner.setdefault(label.owner, []).append(label)
    by_name = by_basename(workspace.paths())
    candidates = {
        owner: found
        for owner, labels in by_owner.items()
        if (named := by_name.get(path_parts(owner)[-1]))
        and (found := _candidates(owner, labels, _likely(labels, named, workspace), codes, workspace))
    }
    # A copy of a project beside it fits as well: the folder that fits most of the recorded files decides.
    folders = Counter(root for found in candidates.values() for root in {_root(c.path, c.owner) for c in found})
    named = {owner: _choose(found, folders) for owner, found in candidates.items()}
    return named | match_cells(by_owner, workspace)


@dataclass(frozen=True, slots=True)
class _Candidate:
    owner: str
    path: str
    common: int
    exact: float
    """Share of the recorded functions that stand at the recorded lines."""


def _likely(labels: Sequence[Label], paths: Iterable[str], workspace: Workspace) -> list[str]:
    """The files that have enough of the recorded functions by what their texts say: only these are parsed."""
    # Lambdas, comprehensions and modules have no names.
    named = [label.name for label in labels if not label.name.startswith("<")]
    least = _LEAST_NAMES * len(labels) - (len(labels) - len(named))
    return [path for path in paths if sum(map(workspace.facts(path).defines, named)) >= least]


def _candidates(
    owner: str, labels: Sequence[Label], paths: Sequence[str], codes: CodesOf, workspace: Workspace
) -> list[_Candidate]:
    found = []
    recorded = path_parts(owner)
    for path in paths:
        common = common_ending(recorded, path_parts(path))
        known = codes(path)
        fits = [known.find(label.name, label.line) for label in labels]
        names = sum(known.has(label.name) for label in labels) / len(labels)
        exact = sum(fit is not None and fit.is_current for fit in fits) / len(labels)
        # Of a library only the very file counts: `utils.py` and `wrapper` are everywhere.
        is_close = common in (len(recorded), len(path_parts(path))) or (common > 1 and exact >= _LEAST_NAMES)
        if names >= _LEAST_NAMES and (is_close or exact == 1.0) and not (is_library(owner) and exact < 1.0):
            found.append(_Candidate(owner, path, common, exact))
    if not found and not is_library(owner) and (linked := linked_file(owner, paths, workspace)):
        found.append(_Candidate(owner, linked, len(recorded), 0.0))
    return found


def linked_file(owner: str, paths: Sequence[str], workspace: Workspace) -> str:
    """Which of `paths` a recorded path leads to through a link inside the workspace; "" if it does not."""
    parts = [part for part in path_parts(owner) if part != "/"]
    for start in range(len(parts) - 1):
        through = "/".join(parts[start:])
        text = None if through in paths else workspace.text(through)
        if text is not None:
            equal = [path for path in paths if workspace.text(path) == text]
            return equal[0] if len(equal) == 1 else ""
    return ""


def _choose(found: Sequence[_Candidate], folders: Counter[str]) -> Matched:
    def rank(candidate: _Candidate) -> tuple[int, float, int]:
        return candidate.common, candidate.exact, folders[_root(candidate.path, candidate.owner)]

    best = max(found, key=rank)
    others = tuple(c.path for c in found if c is not best and rank(c) == rank(best))
    stale = 1.0 if best.exact == 1.0 else 0.6 + 0.3 * best.exact
    return Matched(best.path, stale / (1 + len(others)), others)


def path_parts(path: str) -> tuple[str, ...]:
    """Folders and file name of a path of any system; ("",) for an empty one."""
    return PurePosixPath(path.replace("\\", "/")).parts or ("",)


def common_ending(a: Sequence[str], b: Sequence[str]) -> int:
    """How many parts two paths have in common, from the end."""
    count = 0
    for left, right in zip(reversed(a), reversed(b), strict=False):
        if left != right:
            break
        count += 1
    return count


def by_basename(paths: Iterable[str]) -> dict[str, list[str]]:
    """Paths with "/" by their last part."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(path.rpartition("/")[2], []).append(path)
    return found


def likest(file: str, paths: Iterable[str]) -> str:
    """The path with the longest common ending with a recorded one; "" where several have it, or there is none."""
    by_length: dict[int, list[str]] = {}
    for path in paths:
        by_length.setdefault(common_ending(path_parts(file), path_parts(path)), []).append(path)
    best = by_length[max(by_length)] if by_length else []
    return best[0] if len(best) == 1 else ""


class Hashes:
    """What a workspace's files may hash to as git's blobs, worked out once for each."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, frozenset[str]] = {}

    def having(self, blob: str, paths: Iterable[str]) -> list[str]:
        """Those of `paths` whose content has a hash."""
        return [path for path in paths if blob in self._of(path)]

    def _of(self, path: str) -> frozenset[str]:
        if path not in self._known:
            self._known[path] = blob_hashes(self._workspace.text(path) or "")
        return self._known[path]


def _root(path: str, owner: str) -> str:
    """The workspace folder that the recorded path would start from, were it cut there."""
    parts = path_parts(path)
    return "/".join(parts[: len(parts) - common_ending(path_parts(owner), parts)])


def is_library(owner: str) -> bool:
    """Whether a recorded path is, by itself, a library's and not the program's."""
    return owner.startswith(("<", "torch/", "numpy/")) or "site-packages/" in owner or "/lib/python" in owner
