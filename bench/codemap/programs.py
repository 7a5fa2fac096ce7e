"""The programs that are recorded: small ones in `scripts`, each a file or a folder with a `main.py`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
HELD_OUT = frozenset(
    {
        "audio_tagger",
        "depth_estimation",
        "flow_matching",
        "mixer_compact",
        "point_cloud",
        "siamese_tracker",
        "super_resolution",
        "token_pruning",
    }
)
"""Programs whose misplacements nobody looks at in detail: they show what the others' figures are worth."""
_OPTIONAL = re.compile(r"^(?:from|import) (transformers|timm|torchvision)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Program:
    """One program."""

    name: str
    source: Path
    """The file, or the folder that is its whole project."""

    @property
    def entry(self) -> str:
        """The file to run, relative to its project's folder."""
        return "main.py" if self.source.is_dir() else self.source.name

    @property
    def files(self) -> list[Path]:
        """All of its source."""
        return sorted(self.source.rglob("*.py")) if self.source.is_dir() else [self.source]

    @property
    def is_held_out(self) -> bool:
        """Whether its misplacements are not looked at."""
        return self.name in HELD_OUT

    def lacks(self) -> str:
        """The library that it needs and that is not installed; "" if it can run."""
        needed = {name for file in self.files for name in _OPTIONAL.findall(file.read_text("utf-8"))}
        return next((name for name in sorted(needed) if find_spec(name) is None), "")


def programs(names: list[str]) -> list[Program]:
    """Those named, or all; in order of name. Raises SystemExit for a name that there is none of."""
    found = [Program(path.stem, path) for path in sorted(SCRIPTS.glob("*.py"))]
    found += [Program(path.parent.name, path.parent) for path in sorted(SCRIPTS.glob("*/main.py"))]
    known = {program.name for program in found}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"no program {', '.join(unknown)} in {SCRIPTS}")
    return sorted((p for p in found if not names or p.name in names), key=lambda program: program.name)
