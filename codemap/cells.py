"""Frames of notebook cells, matched to the cells of the workspace's notebooks.

A cell is compiled under a name made from its text: ipykernel 6 and later name it `<temporary folder>/ipykernel_<process
id>/<murmur2 of the text>.py`, IPython before `<ipython-input-<execution count>-<start of a SHA-1 or MD5 of what is
compiled>>`. So a cell that was not edited since is found for certain, whatever the notebook is called. One that was is
found by the functions it defines, or by its execution count. Sources: `ipykernel/compiler.py` (6.0 to 7.4),
`IPython/core/compilerop.py` (5.0 to 9.18).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .labels import Label
from .magics import body_start, is_timed, transformed
from .matched import Matched
from .notebook import NOTEBOOK_SUFFIX, Cell, cells_of
from .source import SourceFile
from .workspace import Workspace

_KERNEL = re.compile(r"(?:^|[\\/])ipykernel_\d+[\\/](?P<hash>\d+)\.py")
_INPUT = re.compile(r"<ipython-input-(?P<count>\d+)-(?P<hash>[0-9a-f]{12})>")
_TIMED = "<timed exec>"
"""What IPython calls the code of every cell under `%%time`."""
_SEED = 0xC70F6907
_MOST_NOTEBOOKS = 500
_LEAST_NAMES = 0.5
_BY_NAMES = 0.7
"""Confidence in a cell found by its functions, of which all stand at their lines; less where fewer do."""
_BY_COUNT = 0.5


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One cell of one notebook."""

    file: SourceFile
    cell: Cell

    @property
    def matched(self) -> Matched:
        shift = self.cell.first_line - 1 + body_start(self.cell.source) + is_timed(self.cell.source)
        return Matched(self.file.path, 1.0, (), shift, self.cell.first_line)


@dataclass(slots=True)
class _Names:
    """The cells of all notebooks by what they are compiled under."""

    cells: list[_Candidate]
    kernel: dict[str, list[_Candidate]] = field(default_factory=dict)
    inputs: dict[str, list[_Candidate]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for one in self.cells:
            text = "\n".join(one.cell.source)
            self.kernel.setdefault(str(murmur2(text.encode("utf-8", "replace"), _SEED)), []).append(one)
            compiled = transformed(one.cell.source).encode("utf-8", "replace")
            for digest in (hashlib.sha1, hashlib.md5):
                name = digest(compiled, usedforsecurity=False).hexdigest()[:12]
                self.inputs.setdefault(name, []).append(one)

    def of(self, owner: str) -> list[_Candidate]:
        """The cells whose text has the hash in the name."""
        if kernel := _KERNEL.search(owner):
            return self.kernel.get(kernel["hash"], [])
        found = _INPUT.fullmatch(owner)
        return self.inputs.get(found["hash"], []) if found else []


def is_cell_name(owner: str) -> bool:
    """Whether a recorded file is a notebook's cell."""
    return owner == _TIMED or bool(_INPUT.fullmatch(owner) or _KERNEL.search(owner))


def match_cells(frames: Mapping[str, Sequence[Label]], workspace: Workspace) -> dict[str, Matched]:
    """Recorded name -> cell, for every cell of `frames` (its labels by recorded name) that has one."""
    recorded = {owner: labels for owner, labels in frames.items() if is_cell_name(owner)}
    if not recorded:
        return {}
    cells = list(_cells(workspace))
    names = _Names(cells)
    exact = {owner: found for owner in recorded if (found := names.of(owner))}
    # A copy of a notebook beside it fits as well: the one that fits most cells decides.
    votes = Counter(path for found in exact.values() for path in {one.file.path for one in found})
    matched = {owner: _first(found, votes, 1.0) for owner, found in exact.items()}
    for owner in recorded.keys() - exact.keys():
        found, confidence = _alike(owner, recorded[owner], cells)
        if found:
            matched[owner] = _first(found, votes, confidence)
    return matched


def _cells(workspace: Workspace) -> Iterator[_Candidate]:
    paths = [path for path in workspace.paths() if path.endswith(NOTEBOOK_SUFFIX)]
    for path in paths[:_MOST_NOTEBOOKS]:
        file = workspace.file(path)
        notebook = cells_of(file) if file is not None else None
        if file is not None and notebook is not None:
            yield from (_Candidate(file, cell) for cell in notebook.cells)


def _first(found: Sequence[_Candidate], votes: Counter[str], confidence: float) -> Matched:
    most = max(votes[one.file.path] for one in found)
    best = [one for one in found if votes[one.file.path] == most]
    matched = best[0].matched
    others = tuple(dict.fromkeys(one.file.path for one in best[1:] if one.file.path != matched.path))
    return Matched(matched.path, confidence / len(best), others, matched.shift, matched.first_line)


def _alike(owner: str, labels: Sequence[Label], cells: Sequence[_Candidate]) -> tuple[list[_Candidate], float]:
    """The cells that are likest to one that was edited since, and how sure that is."""
    if owner == _TIMED:
        timed = [one for one in cells if is_timed(one.cell.source)]
        return (timed, 1.0) if len(timed) == 1 else ([], 0.0)
    named = [label for label in labels if not label.name.startswith("<")]
    scores = [(_fit(one, named), one) for one in cells] if named else []
    best, at_lines = max((score for score, _ in scores), default=(0.0, 0.0))
    if best >= _LEAST_NAMES:
        confidence = _BY_NAMES * (0.5 + 0.5 * at_lines)
        return [one for score, one in scores if score == (best, at_lines)], confidence
    count = _INPUT.fullmatch(owner)
    same = [one for one in cells if count is not None and one.cell.execution_count == int(count["count"])]
    return same, _BY_COUNT


def _fit(one: _Candidate, named: Sequence[Label]) -> tuple[float, float]:
    """Shares of the recorded functions that the cell defines, and that it defines at the recorded lines."""
    first, shift = one.cell.first_line, one.matched.shift
    last = first + len(one.cell.source) - 1
    defined = {(f.name, f.first_line) for f in one.file.functions if first <= f.first_line <= last}
    names = {name for name, _ in defined}
    has = sum(label.name in names for label in named) / len(named)
    return has, sum((label.name, label.line + shift) in defined for label in named) / len(named)


def murmur2(data: bytes, seed: int) -> int:
    """The 32-bit MurmurHash2 of some bytes, as ipykernel computes it."""
    factor, mask = 0x5BD1E995, 0xFFFFFFFF
    found = seed ^ len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        part = int.from_bytes(data[position : position + 4], "little") * factor & mask
        part = (part ^ part >> 24) * factor & mask
        found = found * factor & mask ^ part
    if rest := data[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * factor & mask
    found = (found ^ found >> 13) * factor & mask
    return found ^ found >> 15
