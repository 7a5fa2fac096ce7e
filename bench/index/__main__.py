"""Measures the index of a workspace of thousands of files: `python -m bench.index`."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..results import Figure, Target, publish
from .workspace import make

FILES = 5_000
TOUCHED = 60
TARGETS = {"changed_ms": Target(at_most=50.0)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a first and a second start; 0 if one changed file is known in time."""
    parser = argparse.ArgumentParser(prog="python -m bench.index", description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    files = parser.parse_args(arguments).files
    with tempfile.TemporaryDirectory(prefix="bench-index-") as folder:
        root, cache = Path(folder).resolve() / "workspace", Path(folder) / "cache" / "index.msgpack"
        megabytes = make(root, files) / 1e6
        cold, warm = _start(root, cache), _start(root, cache)
        stored_mb = cache.stat().st_size / 1e6
    figures = [
        *_figures("first start", cold),
        *_figures("second start", warm),
        Figure("first start", "stored_mb", stored_mb),
    ]
    notes = [
        f"{files} files, {megabytes:.0f} MB, of packages installed beside the bench, torch first",
        f"changed_ms: median over {TOUCHED} changed files, until the new facts are known; asked_ms: who calls conv2d",
        "peak_mb is the whole process; bare_mb the same before it indexed anything",
    ]
    return 0 if publish("index", figures, targets=TARGETS, packages=("msgspec", "pathspec"), notes=notes) else 1


def _start(root: Path, cache: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.index.task", str(root), str(cache), str(TOUCHED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def _figures(subject: str, measured: dict[str, Any]) -> list[Figure]:
    names = ("files", "read", "wall_s", "cpu_s", "asked_ms", "peak_mb", "bare_mb")
    worst = max(measured["changed_ms"])
    return [
        *(Figure(subject, name, measured[name]) for name in names),
        Figure(subject, "changed_ms", statistics.median(measured["changed_ms"])),
        Figure(subject, "changed_worst_ms", worst),
    ]


if __name__ == "__main__":
    sys.exit(main())
