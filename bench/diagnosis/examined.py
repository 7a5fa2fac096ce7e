"""Asks a backend the whole exam. Answers may be kept, so that an exam that was ended goes on where it was."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from torchtraceap.analyzer.diagnosis.backends.base import Backend
from torchtraceap.analyzer.findings import Diagnosis

from .asking import by_model
from .questions import Question
from .score import Given, Scored

SAY_EVERY = 10


@dataclass(frozen=True, slots=True)
class Shown:
    """What a backend made of a question, with its words."""

    backend: str
    scored: Scored
    diagnosis: Diagnosis | None


@dataclass(frozen=True, slots=True)
class _Kept:
    """One line of the file of answers."""

    question: str
    given: Given
    diagnosis: Diagnosis | None


def examine(
    name: str, questions: Sequence[Question], backend: Backend, samples: int, answers: Path | None
) -> list[Shown]:
    """Ask all questions, in order. `answers` is a folder in which they are kept; None keeps none."""
    path = answers / f"{_file_name(name)}-{samples}.jsonl" if answers is not None else None
    known = {one.question: one for one in _read(path)} if path is not None and path.exists() else {}
    shown, began = [], time.perf_counter()
    for number, question in enumerate(questions, 1):
        mark = hashlib.sha256(msgspec.json.encode(question)).hexdigest()
        kept = known.get(mark) or _Kept(mark, *by_model(question, backend, samples))
        if path is not None and mark not in known:
            _append(path, kept)
        shown.append(Shown(name, Scored(question, kept.given), kept.diagnosis))
        if number % SAY_EVERY == 0:
            right = sum(one.scored.is_right for one in shown) / number
            spent_s = time.perf_counter() - began
            print(f"{name}: {number} of {len(questions)}, {right:.2f} right, {spent_s:.0f} s", file=sys.stderr)
    return shown


def _file_name(backend: str) -> str:
    return "".join(character if character.isalnum() else "-" for character in backend).strip("-")


def _read(path: Path) -> Iterator[_Kept]:
    """A line that was cut off is left out."""
    for line in path.read_bytes().splitlines():
        try:
            yield msgspec.json.decode(line, type=_Kept)
        except msgspec.DecodeError:
            continue


def _append(path: Path, kept: _Kept) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(msgspec.json.encode(kept) + b"\n")
