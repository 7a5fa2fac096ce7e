"""Source that fits a pattern: the catalogue's fixture pairs (tests/patterns), as a finding's dossier shows source.

Corpus traces come from programs without the fault in a file, so a share of the dossiers is given such an excerpt, with
the fixes that the fixer of the pattern offers for it. Pairs are parted between training and exam.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from random import Random

from torchtraceap.analyzer.diagnosis.dossier import Dossier, Excerpt, OfferedFix
from torchtraceap.analyzer.findings import CURED, Evidence, Finding, Fix, How, Location, Severity
from torchtraceap.codemap.edits import apply_to_files
from torchtraceap.codemap.fixes.base import Case, Confirmation, DeviceFacts
from torchtraceap.codemap.fixes.registry import fixer_of
from torchtraceap.codemap.project import open_workspace

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "patterns"
EXAM_EVERY = 3
"""One pair of so many of each pattern is for the exam."""
MOST_LINES = 40
_FILE = "main.py"
_DIRECTIVE = re.compile(r"# (\w+): (.*)")
_PATHS = ("model.py", "train.py", "src/model.py", "models/network.py", "engine.py", "nets/blocks.py", "tools/run.py")


class Held(Enum):
    """What the source holds."""

    FAULT = "fault"
    CURE = "cure"
    """The fix: the recording is older."""


@dataclass(frozen=True, slots=True)
class Sourced:
    """An excerpt, and the fixes that its fixer offers."""

    excerpt: Excerpt
    fixes: tuple[Fix, ...]


def with_source(dossier: Dossier, slug: str, is_for_exam: bool, rng: Random) -> Dossier:
    """The dossier with source that holds the pattern, or its cure, and the fixes on offer; as it is where no fixture
    fits."""
    found = fitting(slug, is_for_exam)
    if not found:
        return dossier
    sourced = _moved(rng.choice(found), rng.choice(_PATHS))
    fixes = tuple(OfferedFix(fix.id, fix.title, fix.safety) for fix in sourced.fixes)
    return replace(dossier, source=sourced.excerpt, fixes=fixes)


def with_cure(dossier: Dossier, slug: str, is_for_exam: bool, rng: Random) -> Dossier:
    """The dossier with source that holds the fix already; as it is where no fixture fits."""
    found = fitting(slug, is_for_exam, Held.CURE)
    if not found:
        return dossier
    sourced = _moved(rng.choice(found), rng.choice(_PATHS))
    cured = Evidence(CURED, "the source holds what fixes this", "record again", "")
    return replace(dossier, source=sourced.excerpt, fixes=(), evidence=(*dossier.evidence, cured))


@cache
def fitting(slug: str, is_for_exam: bool, held: Held = Held.FAULT) -> tuple[Sourced, ...]:
    """All fixtures of a pattern that are for the exam, or for training."""
    paths = sorted((FOLDER / slug).glob("*.in.py"))
    pairs = [path for path in paths if _output(path).exists()]
    pairs.sort(key=lambda path: hashlib.sha256(path.name.encode()).digest())
    # A pattern with one or two pairs has none for the exam.
    chosen = [path for at, path in enumerate(pairs) if (at % EXAM_EVERY == EXAM_EVERY - 1) == is_for_exam]
    found = (_sourced(slug, path, held) for path in chosen)
    return tuple(one for one in found if one is not None)


def _sourced(slug: str, path: Path, held: Held) -> Sourced | None:
    text = path.read_text("utf-8")
    said = _directives(text)
    confirmation = _confirm(slug, text, said)
    if confirmation is None or not confirmation.fixes:
        return None
    line, fixes = confirmation.location.line, confirmation.fixes
    if held is Held.CURE:
        text = apply_to_files({_FILE: text}, fixes[0].edits)[_FILE]
        line, fixes = min(line, text.count("\n")), ()
    excerpt = _excerpt(text, line)
    return Sourced(excerpt, fixes) if excerpt is not None else None


def _confirm(slug: str, text: str, said: dict[str, list[str]]) -> Confirmation | None:
    fixer = fixer_of(slug)
    if fixer is None or "at" not in said:
        return None
    where = _location(text, said["at"][0])
    callers = tuple(_location(text, fragment) for fragment in said.get("caller", []))
    told = (line.partition(" ") for line in said.get("evidence", []))
    evidence = tuple(Evidence(id, id, value, "") for id, _, value in told)
    finding = Finding("", slug, Severity.WARNING, slug, "", 100.0, 50.0, 20.0, 1.0, evidence, where)
    workspace = open_workspace(Path(__file__).parent / "no-files", {_FILE: text})
    return fixer.confirm(Case(finding, where, callers, workspace, _device(said)))


def _directives(text: str) -> dict[str, list[str]]:
    """The comment lines at the head of a fixture: see tests/codemap/fixes/pairs.py."""
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if found := _DIRECTIVE.fullmatch(line.rstrip()):
            said.setdefault(found[1], []).append(found[2])
    return said


def _device(said: dict[str, list[str]]) -> DeviceFacts:
    name, version = said.get("device", ["cuda 8.0"])[0], said.get("torch", [""])[0]
    if name == "cpu":
        return DeviceFacts(is_cpu=True, torch_version=version)
    major, minor = map(int, name.removeprefix("cuda").strip().split("."))
    return DeviceFacts(False, (major, minor), major >= 8, version)


def _location(text: str, fragment: str) -> Location:
    lines = text.splitlines()
    at = next(at for at, line in enumerate(lines) if fragment in line and not _DIRECTIVE.fullmatch(line.rstrip()))
    indent = len(lines[at]) - len(lines[at].lstrip())
    return Location(_FILE, at + 1, indent + 1, at + 1, len(lines[at]) + 1, "", How.STACK)


def _excerpt(text: str, marked: int) -> Excerpt | None:
    """The innermost function round a line; of code outside of functions, some lines round it."""
    around = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= marked <= (node.end_lineno or 0)
    ]
    lines = text.splitlines()
    head = next((at for at, line in enumerate(lines) if not line.startswith("#")), 0)
    inner = max(around, key=lambda node: node.lineno, default=None)
    begin, end, name = (
        (inner.lineno, inner.end_lineno or 0, inner.name) if inner else (head + 1, len(lines), "<module>")
    )
    begin, end = max(begin, marked - MOST_LINES // 2), min(end, marked + MOST_LINES // 2)
    if not begin <= marked <= end:
        return None
    return Excerpt(_FILE, name, begin, tuple(lines[begin - 1 : end]), marked)


def _moved(sourced: Sourced, path: str) -> Sourced:
    return replace(sourced, excerpt=replace(sourced.excerpt, path=path))


def _output(path: Path) -> Path:
    return path.with_name(path.name.replace(".in.py", ".out.py"))
