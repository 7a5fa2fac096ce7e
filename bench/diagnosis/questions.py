"""A question of the exam, or of training: a dossier, and what is known to be right."""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from torchtraceap.analyzer.diagnosis.dossier import NO_FIX, NO_PATTERN, Dossier

LEAST_VOICE = 0.15
"""What rule or detector must give to what is right, for a question to learn from."""
MOST_BAD = 0.6
"""And the most that the detector may say of what is healthy."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and what is known of it."""

    dossier: Dossier
    right: tuple[str, ...]
    """Slugs that are right, the one that spoils most first; empty where nothing is wrong."""
    family: str
    run: str
    """The recording, of which there may be many questions."""
    sort: str
    """"finding" of a rule, or "window"."""
    trap: str = ""
    """What in it leads astray, in a word; "" for none."""

    @property
    def is_healthy(self) -> bool:
        """Whether "none" is right."""
        return not self.right

    @property
    def is_answerable(self) -> bool:
        """Whether what is right is among the choices."""
        return self.is_healthy or any(choice.slug in self.right for choice in self.dossier.choices)

    @property
    def is_learnable(self) -> bool:
        """Whether what is told speaks for what is right: from the others nobody learns but to guess."""
        if self.is_healthy:
            return self.dossier.bad is None or self.dossier.bad < MOST_BAD
        its = [choice for choice in self.dossier.choices if choice.slug in self.right]
        return any(max(choice.by_rule, choice.by_detector or 0.0) >= LEAST_VOICE for choice in its)

    def is_right(self, pattern: str) -> bool:
        """Whether an answer's pattern is right."""
        return pattern in (self.right or (NO_PATTERN,))

    @property
    def right_fixes(self) -> tuple[str, ...]:
        """The offered fixes of what is wrong, or "none" where none is offered."""
        offered = [fix.id for fix in self.dossier.fixes if fix.id.partition("/")[0] in self.right]
        return tuple(offered) or (NO_FIX,)


def write_questions(path: Path, questions: Iterable[Question]) -> None:
    """One question a line, as JSON, LZMA-compressed."""
    lines = b"".join(msgspec.json.encode(question) + b"\n" for question in questions)
    path.write_bytes(lzma.compress(lines, preset=9 | lzma.PRESET_EXTREME))


def read_questions(path: Path) -> list[Question]:
    """What `write_questions` wrote. Raises OSError, or ValueError, naming the file, where it is damaged."""
    decoder = msgspec.json.Decoder(Question)
    try:
        return [decoder.decode(line) for line in lzma.decompress(path.read_bytes()).splitlines()]
    except (lzma.LZMAError, msgspec.DecodeError) as error:
        raise ValueError(f"{path.name} is damaged: {error}") from error
