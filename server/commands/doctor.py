"""`torchtraceap doctor`: what is installed, what is missing and how to get it."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from ...analyzer.patterns.registry import all_patterns
from ..pages import page_uri

PACKAGE = "torchtraceap"
INOTIFY = Path("/proc/sys/fs/inotify")
FEWEST_WATCHES = {"max_user_watches": 8192, "max_user_instances": 64}
"""Below these, watching a large workspace beside an editor that watches too may run out."""
EXTRAS = {
    "record": "to record programs; analysing never needs it",
    "train": "to train the detector again; analysing never needs it",
}
"""What the optional packages are used for, by extra. Extras that nothing uses yet are not spoken of."""
EDITORS = {"nvim": "Neovim", "code": "VS Code", "hx": "Helix"}
_REQUIREMENT = re.compile(r"""([A-Za-z0-9._-]+).*?(?:extra\s*==\s*["']([\w-]+)["'])?\s*$""")


class Mark(str, Enum):
    """How a thing stands."""

    GOOD = "ok"
    OPTIONAL = "--"
    BAD = "!!"


STYLES = {Mark.GOOD: "green", Mark.OPTIONAL: "dim", Mark.BAD: "bold red"}


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report: `name` is as `state` says, and `remedy` tells what to do about it."""

    mark: Mark
    name: str
    state: str
    remedy: str = ""


@click.command()
def doctor() -> None:
    """Say what is installed, what is missing and how to get it. Exits with 1 if something needed is missing."""
    console = Console()
    checks = [*_program(), *_dependencies(), *_extras(), *_tools(), *_watching()]
    for check in checks:
        line = Text.assemble((f"{check.mark.value} ", STYLES[check.mark]), f"{check.name:<24} {check.state}")
        if check.remedy:
            line.append(f"  ->  {check.remedy}")
        console.print(line, soft_wrap=True)
    sys.exit(1 if any(check.mark is Mark.BAD for check in checks) else 0)


def _program() -> Iterable[Check]:
    yield Check(Mark.GOOD, PACKAGE, f"{metadata.version(PACKAGE)} in {Path(__file__).parents[2]}")
    yield Check(Mark.GOOD, "Python", f"{platform.python_version()} ({sys.executable}) on {platform.platform()}")
    patterns = all_patterns()
    pages = sum(page_uri(pattern.slug) is not None for pattern in patterns)
    complete = pages == len(patterns)
    yield Check(
        Mark.GOOD if complete else Mark.BAD,
        "patterns",
        f"{len(patterns)}, {pages} with a page",
        "" if complete else f"reinstall: pip install --force-reinstall {PACKAGE}",
    )


def _dependencies() -> Iterable[Check]:
    for name, extra in _requirements():
        if not extra:
            yield _package(name, Mark.BAD, f"pip install {name}")


def _extras() -> Iterable[Check]:
    for name, extra in _requirements():
        if extra in EXTRAS:
            yield _package(name, Mark.OPTIONAL, f"pip install '{PACKAGE}[{extra}]'", f" ({EXTRAS[extra]})")


def _requirements() -> Iterable[tuple[str, str]]:
    """Name and extra ("" for none) of every requirement, each package once."""
    seen: set[str] = set()
    for requirement in metadata.requires(PACKAGE) or []:
        match = _REQUIREMENT.match(requirement)
        if match and match[1] not in seen:
            seen.add(match[1])
            yield match[1], match[2] or ""


def _package(name: str, if_missing: Mark, remedy: str, purpose: str = "") -> Check:
    try:
        return Check(Mark.GOOD, name, metadata.version(name) + purpose)
    except metadata.PackageNotFoundError:
        return Check(if_missing, name, f"not installed{purpose}", remedy)


def _tools() -> Iterable[Check]:
    for command, editor in EDITORS.items():
        path = shutil.which(command)
        yield Check(
            Mark.GOOD if path else Mark.OPTIONAL,
            editor,
            path or "not on PATH",
            "to connect it: README, Editors" if path else "",
        )
    for command in ("nvidia-smi", "rocm-smi"):
        if path := shutil.which(command):
            yield Check(Mark.GOOD, command, path)


def _watching() -> Iterable[Check]:
    """Linux gives each user a number of file watches; when they run out, new traces go unnoticed."""
    for name, fewest in FEWEST_WATCHES.items():
        try:
            limit = int((INOTIFY / name).read_text("ascii"))
        except (OSError, ValueError):
            continue
        enough = limit >= fewest
        remedy = "" if enough else f"sudo sysctl fs.inotify.{name}={fewest * 8}"
        yield Check(Mark.GOOD if enough else Mark.BAD, f"inotify {name}", str(limit), remedy)
