"""`torchtraceap fix`: apply the fixes, or show what they would change."""

from __future__ import annotations

import difflib
import io
import os
import shutil
import stat
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from ...analyzer.detected import Options
from ...analyzer.figures import place_text
from ...analyzer.findings import Finding, Fix, Safety, Severity, TextEdit
from ...analyzer.report.printable import printable
from ...codemap.disk import ReadLimits, read_inside
from ...codemap.edits import apply_to_files, compatible
from ...codemap.in_cells import in_cell
from ...codemap.notebook import cells_of, read_notebook
from ...codemap.notebook_edits import edited_notebook
from ...codemap.project import ProjectWorkspace
from .inputs import examine, with_inputs

FAILED = 2


@click.command()
@with_inputs
@click.option("--unsafe", is_flag=True, help="Also fixes that may change results; check them.")
@click.option("--diff", "only_diff", is_flag=True, help="Show the changes as a unified diff; write nothing.")
def fix(
    traces: tuple[str, ...],
    source: Path,
    min_saving: float,
    model_type: str,
    select: frozenset[str],
    ignore: frozenset[str],
    with_detector: bool,
    unsafe: bool,
    only_diff: bool,
) -> None:
    """Apply the safe fixes of what the traces show to the files below --source.

    PATH is a trace, a folder of traces, or a glob. Hints are left alone unless --select names them.
    """
    stderr = Console(stderr=True, highlight=False, soft_wrap=True)
    options = Options(min_saving, select, ignore, model_type)
    outcome = examine(traces, source, options, stderr, with_detector=with_detector)
    for error in outcome.errors:
        stderr.print(f"error: {printable(str(error))}", style="red", markup=False)
    findings = outcome.report.findings if outcome.report is not None else ()
    wanted = [finding for finding in findings if finding.severity is not Severity.HINT or select]
    chosen = dict.fromkeys(each for finding in wanted if (each := choose(finding, unsafe)) is not None)
    texts = _texts(outcome.workspace, {edit.path for each in chosen for edit in each.edits})
    taken, left = compatible(chosen, texts)
    try:
        for path, old, new in _changed(outcome.workspace, texts, [edit for each in taken for edit in each.edits]):
            if only_diff:
                _print_diff(path, old, new)
            else:
                write_source(outcome.workspace, path, old, new)
    except (OSError, ValueError) as error:
        stderr.print(f"error: {printable(str(error))}", style="red", markup=False)
        sys.exit(FAILED)
    if outcome.report is not None:
        _tell(stderr, outcome.workspace, taken, left, wanted, unsafe, only_diff)
    sys.exit(FAILED if outcome.errors else 0)


def choose(finding: Finding, unsafe: bool) -> Fix | None:
    """The first safe fix of a finding; if there is none and `unsafe` allows it, the first unsafe one."""
    safe = next((each for each in finding.fixes if each.safety is Safety.SAFE), None)
    return safe or (finding.fixes[0] if unsafe and finding.fixes else None)


def write_source(workspace: ProjectWorkspace, path: str, old: str, new: str) -> None:
    """Replace a file's text at once (never half), keeping its encoding, byte order mark and mode.

    Raises ValueError when the file lies outside the workspace, is read-only, has changed since it was read, or cannot
    hold the new text in its encoding; OSError when it cannot be written.
    """
    target = (workspace.root / path).resolve()
    if not target.is_relative_to(workspace.root):
        raise ValueError(f"{path} lies outside {workspace.root}; left as it is")
    if not target.stat().st_mode & stat.S_IWUSR:  # replacing a file asks nobody whether it may be written
        raise ValueError(f"{path} is read-only; left as it is")
    data = target.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    if data.decode(encoding) != old:
        raise ValueError(f"{path} has changed meanwhile; left as it is")
    encoded = new.encode(encoding)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(encoded)
        shutil.copymode(target, temporary)
        Path(temporary).replace(target)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def unified_diff(path: str, old: str, new: str) -> list[str]:
    """Lines, with their ends, of a diff that `patch -p1` takes."""
    lines = difflib.unified_diff(_lines(old), _lines(new), f"a/{path}", f"b/{path}")
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def _lines(text: str) -> list[str]:
    return io.StringIO(text, newline="\n").readlines()


def _texts(workspace: ProjectWorkspace, paths: Iterable[str]) -> dict[str, str]:
    """The text of each file that is inside the workspace and could be decoded; of a notebook, that of its cells."""
    files = {path: file for path in paths if (file := workspace.file(path)) is not None and not file.error}
    notebooks = {path: notebook for path, file in files.items() if (notebook := cells_of(file)) is not None}
    return {
        path: "\n".join(notebooks[path].written) if path in notebooks else file.text for path, file in files.items()
    }


def _changed(
    workspace: ProjectWorkspace, texts: Mapping[str, str], edits: Sequence[TextEdit]
) -> Iterator[tuple[str, str, str]]:
    """Path, old and new content of every file that the edits change."""
    for path, text in apply_to_files(texts, edits).items():
        file = workspace.file(path)
        notebook = cells_of(file) if file is not None else None
        if text == texts[path]:
            continue
        if notebook is None:
            yield path, texts[path], text
        else:
            data = read_inside(workspace.root, path, ReadLimits()) or b""
            if read_notebook(data) != notebook:
                raise ValueError(f"{path} has changed meanwhile; left as it is")
            new = edited_notebook(data, notebook, [edit for edit in edits if edit.path == path])
            yield path, data.decode("utf-8"), new.decode("utf-8")


def _print_diff(path: str, old: str, new: str) -> None:
    for line in unified_diff(path, old, new):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[0])
        click.secho(line, fg=colour, nl=False)


def _label(each: Fix, workspace: ProjectWorkspace) -> str:
    edit = each.edits[0]
    file = workspace.file(edit.path)
    notebook = cells_of(file) if file is not None else None
    edit = edit if notebook is None else in_cell(edit, notebook)
    return printable(f"{place_text(edit.path, edit.line, cell=edit.cell)}: {each.title} [{each.id}]")


def _tell(
    stderr: Console,
    workspace: ProjectWorkspace,
    taken: Sequence[Fix],
    left: Sequence[Fix],
    wanted: Sequence[Finding],
    unsafe: bool,
    only_diff: bool,
) -> None:
    verb = "would fix" if only_diff else "fixed"
    for each in taken:
        stderr.print(Text(f"{verb} {_label(each, workspace)}"))
    for each in left:
        stderr.print(Text(f"left {_label(each, workspace)}: it overlaps another fix, or its file cannot be read"))
    only_unsafe = sum(choose(finding, unsafe) is None and bool(finding.fixes) for finding in wanted)
    if only_unsafe:
        stderr.print(f"{only_unsafe} more with --unsafe")
    by_hand = sum(not finding.fixes for finding in wanted)
    if by_hand:
        stderr.print(f"{by_hand} to be fixed by hand; `torchtraceap analyze` says how")
    if taken and not only_diff:
        stderr.print("record again to see what it gained")
    elif left and not taken:
        stderr.print("nothing fixed")
    elif not taken:
        stderr.print(f"no {'' if unsafe else 'safe '}fix" if wanted else "nothing to fix")
