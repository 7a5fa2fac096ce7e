"""The folder of recorded traces that a bench reads, from its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "traces"


def traces_folder(
    bench: str,
    about: str | None,
    arguments: Sequence[str] | None,
    needs: str = "",
    default: Path | None = None,
) -> Path | None:
    """The folder named on the command line, or the default one; None, saying so, where the default is not there.

    `needs` is a file that must be in it. A named folder that is not there, or lacks the file, ends the process with 2.
    """
    usual = default or DEFAULT_FOLDER
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=f"python -m bench.{bench}", description=about, formatter_class=raw)
    parser.add_argument(
        "folder", nargs="?", type=Path, help=f"where they are (default: shared/{usual.name} beside the checkout)"
    )
    named: Path | None = parser.parse_args(arguments).folder
    folder = named or usual
    if folder.is_dir() and (folder / needs).exists():
        return folder.resolve()
    missing = f"no {needs} in {folder}" if needs and folder.is_dir() else f"no folder {folder}"
    if named:
        parser.error(missing)
    print(f"skipped bench.{bench}: {missing}; name the folder of recorded traces as an argument")
    return None


def trace_named(folder: Path, prefix: str) -> Path:
    """The trace whose name starts with `prefix` and "_". Ends the process, saying so, where there is none."""
    found = sorted(folder.glob(f"{prefix}_*.json*"))
    if not found:
        raise SystemExit(f"no trace {prefix}_*.json* in {folder}")
    return found[0]
