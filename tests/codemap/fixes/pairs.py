"""Fixture pairs `tests/patterns/<slug>/<name>.in.py` and `.out.py`. An input without output is a control.

Comment lines at the head of the input say what the trace gave:
    # at: TEXT         the place: the first later line that holds TEXT
    # caller: TEXT     a caller's place, innermost first; may be repeated
    # device: cpu      `cpu`, or `cuda` with a capability (`cuda 7.0`; without one 8.0)
    # torch: 2.1       the version
    # line: TEXT       where the finding must end up, when not at the place
    # fix: unsafe      the fix's safety; `safe` when not given
    # confirmed: no    for a control: the fault itself must be denied
    # evidence: ID VALUE    what the trace said; may be repeated
A pair with a safe fix defines `run()`, whose result must be the same before and after.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from torchtraceap.analyzer.findings import Evidence, Finding, Fix, How, Location, Severity
from torchtraceap.codemap.edits import apply_to_files
from torchtraceap.codemap.fixes.base import Case, Confirmation, DeviceFacts
from torchtraceap.codemap.fixes.registry import fixers
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.source import split_lines

FOLDER = Path(__file__).parents[2] / "patterns"
_DIRECTIVE = re.compile(r"# (\w+): (.*)")
_EMPTY = Path(__file__).parent / "no_files"


@dataclass(frozen=True)
class Pair:
    path: Path
    slug: str
    before: str
    after: str | None
    said: dict[str, list[str]]

    @property
    def is_control(self) -> bool:
        return self.after is None

    def one(self, name: str, default: str = "") -> str:
        return self.said.get(name, [default])[0]


def load(path: Path) -> Pair:
    before = path.read_bytes().decode()
    said: dict[str, list[str]] = {}
    for line in split_lines(before):
        if not line.startswith("#"):
            break
        if found := _DIRECTIVE.fullmatch(line.rstrip()):
            said.setdefault(found[1], []).append(found[2])
    out = path.with_name(path.name.replace(".in.py", ".out.py"))
    return Pair(path, path.parent.name, before, out.read_bytes().decode() if out.exists() else None, said)


def inputs() -> list[Path]:
    slugs = fixers()
    return sorted(path for path in FOLDER.glob("*/*.in.py") if path.parent.name in slugs)


def device_of(pair: Pair) -> DeviceFacts:
    said = pair.one("device", "cuda 8.0")
    if said == "cpu":
        return DeviceFacts(is_cpu=True, torch_version=pair.one("torch"))
    major, minor = (int(part) for part in said.removeprefix("cuda").strip().split("."))
    return DeviceFacts(False, (major, minor), major >= 8, pair.one("torch"))


def line_of(text: str, fragment: str) -> int:
    lines = split_lines(text)
    return next(n for n, line in enumerate(lines, 1) if fragment in line and not _DIRECTIVE.fullmatch(line.rstrip()))


def holds(text: str, fragments: list[str]) -> bool:
    code = [line for line in split_lines(text) if not _DIRECTIVE.fullmatch(line.rstrip())]
    return all(any(fragment in line for line in code) for fragment in fragments)


def case(pair: Pair, text: str | None = None, at: Location | None = None) -> Case:
    text = pair.before if text is None else text
    place = at or location("main.py", text, line_of(text, pair.one("at")))
    callers = [location("main.py", text, line_of(text, fragment)) for fragment in pair.said.get("caller", [])]
    told = [line.partition(" ") for line in pair.said.get("evidence", [])]
    found = replace(finding(pair.slug, place), evidence=tuple(Evidence(id, id, value, "") for id, _, value in told))
    return Case(found, place, tuple(callers), open_workspace(_EMPTY, {"main.py": text}), device_of(pair))


def location(path: str, text: str, line: int) -> Location:
    held = split_lines(text)[line - 1]
    start = len(held) - len(held.lstrip()) + 1
    return Location(path, line, start, line, len(held) + 1, "", How.STACK)


def finding(slug: str, place: Location | None = None, message: str = "") -> Finding:
    return Finding("TAP000", slug, Severity.WARNING, slug, message, 100.0, 50.0, 20.0, 1.0, (), place)


def confirm(pair: Pair, text: str | None = None, at: Location | None = None) -> Confirmation | None:
    return fixers()[pair.slug].confirm(case(pair, text, at))


def fixed(text: str, fix: Fix) -> str:
    return apply_to_files({"main.py": text}, fix.edits)["main.py"]
