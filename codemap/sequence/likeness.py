"""Which scripts of a workspace look like the one that a trace is of, by their words alone: without following any."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from ..knowledge import Knowledge
from ..recorded import RecordedFiles

_MOST_IMPORTED = 40


def fits_of(
    known: Knowledge, files: RecordedFiles, scripts: Collection[str], words: Collection[str]
) -> dict[str, float]:
    """For each script, how many of the `words` (operators, module classes, ranges of the trace) it or what it imports
    holds; words that few scripts hold count more."""
    texts = {path: _plain("\n".join(_texts(known, files, path))) for path in scripts}
    fits = dict.fromkeys(scripts, 0.0)
    for word in {_plain(word) for word in words}:
        holding = [path for path in scripts if word in texts[path]]
        for path in holding:
            fits[path] += math.log(1.0 + len(texts) / len(holding)) - math.log(2.0)
    return fits


def _texts(known: Knowledge, files: RecordedFiles, script: str) -> Iterator[str]:
    """The texts of a script and of the files of the workspace that it imports, also by way of others."""
    by_stem: dict[str, list[str]] = {}
    for path in files.paths():
        pure = PurePosixPath(path)
        by_stem.setdefault(pure.parent.name if pure.name == "__init__.py" else pure.stem, []).append(path)
    pending, seen = [script], {script}
    while pending and len(seen) <= _MOST_IMPORTED:
        path = pending.pop()
        yield files.text(path) or ""
        for origin in known.index(path).imports.values():
            parts = origin.split(".")[-2:]
            for other in (each for part in parts for each in by_stem.get(part, ())):
                is_near = PurePosixPath(other).parts[:1] == PurePosixPath(script).parts[:1] or "/" not in script
                if other not in seen and is_near:
                    seen.add(other)
                    pending.append(other)


def _plain(text: str) -> str:
    """Without case and underscores: `BatchNorm2d` holds `batch_norm`."""
    return text.lower().replace("_", "")
