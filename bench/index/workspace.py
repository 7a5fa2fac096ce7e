"""A workspace of thousands of real Python files, made for one run from what is installed beside the bench."""

from __future__ import annotations

import os
import shutil
import sysconfig
import time
from pathlib import Path

PACKAGES = ("torch", "pandas", "sympy", "plotly", "networkx", "numpy", "libcst", "pygments", "setuptools", "pip")
"""Those that are installed are taken, torch first."""
LARGEST_BYTES = 300_000
AGE_NS = 3_600_000_000_000
"""How long ago the files seem to have been written: just now written ones are read twice."""


def make(root: Path, files: int) -> int:
    """Copy `files` files below `root`, from one package after the other; their bytes together."""
    site = Path(sysconfig.get_paths()["purelib"])
    found = (path for package in PACKAGES for path in sorted((site / package).rglob("*.py")))
    chosen = [path for path in found if 0 < path.stat().st_size <= LARGEST_BYTES]
    if len(chosen) < files:
        raise SystemExit(f"only {len(chosen)} Python files are installed; {files} are needed: install the dev group")
    then = time.time_ns() - AGE_NS
    total = 0
    for path in chosen[:files]:
        copy = root / path.relative_to(site)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        os.utime(copy, ns=(then, then))
        total += path.stat().st_size
    return total
