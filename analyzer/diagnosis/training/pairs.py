"""What a model learns from: one dossier and the answer that is right for it a line, as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from ..answer import Answer
from ..dossier import NO_FIX, NO_PATTERN, Dossier
from ..figures import figures_of
from ..prompt import EDIT


class PairsError(ValueError):
    """A file of pairs cannot be used. The text names the file and the line, and says why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One example, and where it comes from."""

    dossier: Dossier
    answer: Answer
    split: Literal["train", "exam"]
    """What is in the exam is never learned from."""
    family: str
    """Of the model that was traced: families are all in one split."""
    run: str
    """The recording, of which there may be many pairs."""


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write one pair a line. What cannot be read back by `read_pairs` is refused before the file is touched."""
    lines: list[bytes] = []
    for number, pair in enumerate(pairs, 1):
        if complaint := _complaint(pair):
            raise PairsError(f"{path}: line {number}: {complaint}")
        lines.append(msgspec.json.encode(pair) + b"\n")
    path.write_bytes(b"".join(lines))


def read_pairs(path: Path) -> list[Pair]:
    """All pairs of a file. Raises PairsError with the number of the first line that is none, OSError."""
    decoder = msgspec.json.Decoder(Pair)
    pairs: list[Pair] = []
    families: dict[str, str] = {}
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                pair = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise PairsError(f"{path}: line {number}: {error}") from error
            complaint = _complaint(pair)
            if families.setdefault(pair.family, pair.split) != pair.split:
                complaint = f"family {pair.family!r} is in both splits"
            if complaint:
                raise PairsError(f"{path}: line {number}: {complaint}")
            pairs.append(pair)
    if not pairs:
        raise PairsError(f"{path}: no pairs in it")
    return pairs


def _complaint(pair: Pair) -> str:
    """Why no model may learn the answer from the dossier; "" if it may."""
    dossier, answer = pair.dossier, pair.answer
    if answer.pattern not in {NO_PATTERN, *(choice.slug for choice in dossier.choices)}:
        return f"pattern {answer.pattern!r} is not among the dossier's choices"
    if answer.fix not in {NO_FIX, EDIT, *(fix.id for fix in dossier.fixes)}:
        return f"fix {answer.fix!r} is not among the dossier's fixes"
    if (answer.fix == EDIT) != bool(answer.edit):
        return "an edit without the fix that names it, or the other way round"
    known = {figure.id for figure in figures_of(dossier)}
    if unknown := {id for claim in answer.claims for id in claim.evidence} - known:
        return f"a claim names evidence that is not there: {', '.join(sorted(unknown))}"
    return ""
