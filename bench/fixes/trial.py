"""One package: where the fixers find their faults, and what becomes of the files that they fix."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torchtraceap.analyzer.findings import Finding, Fix, How, Location, Severity
from torchtraceap.codemap.edits import apply_to_files
from torchtraceap.codemap.fixes.base import Case, Confirmation, DeviceFacts, Fixer
from torchtraceap.codemap.fixes.registry import fixers
from torchtraceap.codemap.project import Parses, ProjectWorkspace, open_workspace

DEVICES = (DeviceFacts(False, (8, 0), True, "2.9.0"), DeviceFacts(is_cpu=True, torch_version="2.9.0"))
"""The second one is asked for what concerns the CPU alone."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A statement that a fixer confirms, and one fix of it if it offers any."""

    slug: str
    package: str
    path: str
    line: int
    fix: Fix | None
    text: str
    """What a reader needs to judge it: where, why no fix, or the edit as a diff."""


@dataclass(slots=True)
class Trial:
    """What came of one package."""

    package: str
    files: int = 0
    hits: list[Hit] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """Exceptions, fixed files that do not parse, fixes offered again: each in words."""


def try_package(folder: Path, slugs: Sequence[str] = ()) -> Trial:
    """Every fixer (or those named) on every file of a package."""
    parses = Parses(most=100_000)
    workspace = open_workspace(folder, parses=parses)
    trial = Trial(folder.name, len(workspace.paths()))
    seen: set[tuple[str, str, int, str]] = set()
    for fixer in fixers().values():
        if fixer.search is None or (slugs and fixer.slug not in slugs):
            continue
        for device in DEVICES:
            try:
                found = fixer.search(_finding(fixer.slug), workspace, device)
            except Exception as error:  # noqa: BLE001 - to be counted, whatever it is
                trial.failures.append(f"{folder.name}: {fixer.slug} raised {type(error).__name__}: {error}")
                continue
            for confirmation in found:
                for hit in _hits(folder.name, workspace, fixer, confirmation):
                    key = (hit.slug, hit.path, hit.line, hit.text)
                    if key not in seen:
                        seen.add(key)
                        trial.hits.append(hit)
                        trial.failures += _faults(folder, parses, workspace, fixer, device, hit)
            if found:
                break
    return trial


def _hits(package: str, workspace: ProjectWorkspace, fixer: Fixer, confirmation: Confirmation) -> Iterator[Hit]:
    where = confirmation.location
    head = f"=== {fixer.slug} {package}/{where.path}:{where.line}"
    if not confirmation.fixes:
        yield Hit(fixer.slug, package, where.path, where.line, None, f"{head} no fix: {confirmation.message}\n")
    for fix in confirmation.fixes:
        texts = _texts(workspace, fix)
        after = apply_to_files(texts, fix.edits)
        text = f"{head} {fix.safety.value}: {fix.title}\n" + "".join(
            _diff(path, texts[path], after[path]) for path in sorted(texts)
        )
        yield Hit(fixer.slug, package, where.path, where.line, fix, text)


def _faults(
    folder: Path, parses: Parses, workspace: ProjectWorkspace, fixer: Fixer, device: DeviceFacts, hit: Hit
) -> Iterator[str]:
    """What is wrong with a fix, in words."""
    if hit.fix is None:
        return
    name = f"{hit.package}/{hit.path}:{hit.line}: {fixer.slug}"
    after = apply_to_files(_texts(workspace, hit.fix), hit.fix.edits)
    for path, text in after.items():
        try:
            ast.parse(text)
        except (SyntaxError, ValueError) as error:
            yield f"{name}: {path} no longer parses: {error}"
            return
    where = Location(hit.path, hit.line, 1, hit.line, 2, "", How.OPERATOR)
    fixed = open_workspace(folder, after, parses=parses)
    case = Case(_finding(fixer.slug, where), where, (), fixed, device)
    try:
        again = fixer.confirm(case)
    except Exception as error:  # noqa: BLE001 - to be counted, whatever it is
        yield f"{name}: raised {type(error).__name__} on the fixed text: {error}"
        return
    if again is not None and any(one.edits == hit.fix.edits or one.id == hit.fix.id for one in again.fixes):
        yield f"{name}: is fixed again"


def _texts(workspace: ProjectWorkspace, fix: Fix) -> dict[str, str]:
    return {path: workspace.text(path) or "" for path in {edit.path for edit in fix.edits}}


def _diff(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), path, path, n=6)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _finding(slug: str, where: Location | None = None) -> Finding:
    return Finding("TAP000", slug, Severity.WARNING, slug, "", 100.0, 50.0, 20.0, 1.0, (), location=where)
