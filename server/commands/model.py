"""`torchtraceap model`: the models that a workspace builds, with sizes and, from a trace, times."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...analyzer.figures import format_ms, format_pct
from ...analyzer.report.printable import one_line, printable
from ...analyzer.timeline.build import build_timeline
from ...analyzer.trace.limits import TraceError
from ...codemap.in_cells import model_in_cells
from ...codemap.knowledge import Knowledge
from ...codemap.models import find_models, has_sizes
from ...codemap.module_rows import Row, bytes_text, count_text, rows_of, shapes_text
from ...codemap.module_text import where_text
from ...codemap.modules import Basis, Model, Module
from ...codemap.project import open_workspace
from .inputs import expand, newest_first, read_one, sentence
from .progress import reporting

FAILED = 2
_MOST_SHOWN = 5
_MOST_NAMED = 20
_WIDEST = 4000
"""Columns of a report that goes to a file or a pipe: nothing is cut there."""


@click.command()
@click.option(
    "--source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    show_default="the current folder",
    help="The folder of the model's source. Nothing outside it is opened.",
)
@click.option("--trace", metavar="PATH", help="A trace of it, for time per step; of a folder or a glob the newest one.")
@click.option("--input", "given", metavar="SIZES", help="What goes into the model, such as 8x3x224x224.")
@click.option("--class", "wanted", metavar="NAME", help="Only models of this class.")
@click.option("--all", "is_unfolded", is_flag=True, help="Every module and every model: fold nothing.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def model(source: Path, trace: str | None, given: str | None, wanted: str | None, is_unfolded: bool, form: str) -> None:
    """Print the models that the source builds: parameters, sizes, outputs, and time per step beside each module.

    The source is read, not run. With a trace that `torchtraceap record` wrote, sizes are those of the run.

    \b
    Exit code: 0, or 2 if the trace cannot be read or no model was found.
    """
    sizes = parse_sizes(given) if given is not None else None
    stderr = Console(stderr=True)
    with reporting(stderr) as reporter:
        timeline = None
        if trace is not None:
            path = newest_first(expand([trace]))[0]
            try:
                timeline = build_timeline(read_one(path, reporter))
            except (TraceError, OSError) as error:
                raise click.ClickException(sentence(path, error)) from error
        reporter.stage("reading the source")
        workspace = open_workspace(source)
        search = find_models(Knowledge(workspace), timeline, sizes)
        every = tuple(replace(one, root=model_in_cells(one.root, workspace.file)) for one in search.models)
    found = every if wanted is None else tuple(one for one in every if one.root.class_name == wanted)
    if not found:
        raise click.ClickException(_clean(_why_none(source, wanted, every, search.notes)))
    if form == "json":
        click.echo(to_json(found).encode(), nl=False)
        return
    console = Console() if sys.stdout.isatty() else Console(width=_WIDEST)
    shown = found if is_unfolded or wanted is not None else found[:_MOST_SHOWN]
    for at, one in enumerate(shown):
        if at:
            console.print()
        _print(one, console, folds=not is_unfolded)
    if len(shown) < len(found):
        names = ", ".join(dict.fromkeys(one.root.class_name for one in found[len(shown) :]))
        console.print(
            Text(printable(f"\n{len(found) - len(shown)} more: {names}. --class NAME shows one, --all all"), "dim")
        )


def _why_none(source: Path, wanted: str | None, every: Sequence[Model], notes: Sequence[str]) -> str:
    """Why there is no model to show: which ones there are, or what could not be read."""
    if every:
        names = list(dict.fromkeys(one.root.class_name for one in every))
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        reason = f"found are {', '.join(names[:_MOST_NAMED])}{more}"
    elif notes:
        reason = "in what could be read no class derives from torch.nn.Module, or none is used"
    else:
        reason = "no class there derives from torch.nn.Module, or none is used"
    name = f" of class {wanted}" if wanted is not None else ""
    return "; ".join([f"no model{name} in {source}: {reason}", *notes])


def parse_sizes(text: str) -> tuple[int, ...]:
    """The sizes of `8x3x224x224`. Raises click.BadParameter for anything else."""
    if not re.fullmatch(r"[1-9]\d{0,8}([x,*][1-9]\d{0,8}){0,7}", text.strip()):
        raise click.BadParameter(f"{text!r} is no size such as 8x3x224x224", param_hint="--input")
    return tuple(int(part) for part in re.split(r"[x,*]", text.strip()))


def _print(one: Model, console: Console, *, folds: bool) -> None:
    root, totals = one.root, one.root.totals()
    at = root.built_at or root.defined_at
    place = f"  {where_text(at)}" if at is not None else ""
    figures = (
        f"{count_text(totals.parameters, is_whole=totals.is_whole)} parameters, "
        f"{bytes_text(totals.bytes, is_whole=totals.is_whole)} with buffers"
    )
    console.print(Text.assemble((_clean(root.class_name), "bold"), _clean(place), f"  {figures}"), soft_wrap=True)
    for line in _basis(one):
        console.print(Text(f"  {_clean(line)}", "dim"), soft_wrap=True)
    console.print(_table(one, folds=folds))


def _basis(one: Model) -> list[str]:
    """Where the facts come from, and what is missing."""
    said = {
        Basis.SOURCE: "from the source, which was not run",
        Basis.RECORDING: "as recorded; the source builds no such model that could be found",
        Basis.BOTH: "sizes as recorded, places from the source",
        Basis.TRACE: "from the trace alone: the source builds no such model that could be found",
    }
    lines = [said[one.root.basis]]
    if one.times_from and one.step_us is not None:
        lines.append(f"times from {one.times_from}; a step takes {format_ms(one.step_us)} ms")
    if one.root.basis is Basis.SOURCE and not has_sizes(one.root):
        lines.append("the size of what goes in is not known: --input gives it")
    return [*lines, *one.notes]


def _table(one: Model, *, folds: bool) -> Table:
    has_times = any(module.us_per_step is not None for module in one.root.walk())
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style="dim")
    table.add_column("module", overflow="ellipsis", no_wrap=True, min_width=24)
    for name in ("parameters", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("output", no_wrap=True)
    if has_times:
        table.add_column("ms/step", justify="right", no_wrap=True)
        table.add_column("step", justify="right", no_wrap=True)
    table.add_column("built at", overflow="ellipsis", no_wrap=True)
    for row in rows_of(one.root, folds=folds):
        table.add_row(*_cells(row, has_times))
    return table


def _cells(row: Row, has_times: bool) -> list[Text]:
    module, totals = row.module, row.totals
    label = f"{row.lead}{row.label} " if row.label else row.lead
    name = Text.assemble(_clean(label), (_clean(module.class_name), "cyan"))
    if row.count > 1:
        name.append(f" x {row.count}", "bold")
    for remark in _remarks(module):
        name.append(f" ({_clean(remark)})", "yellow")
    cells = [name, Text(""), Text("")]
    if totals.bytes or not totals.is_whole:
        cells[1:] = [
            Text(count_text(totals.parameters, is_whole=totals.is_whole)),
            Text(bytes_text(totals.bytes, is_whole=totals.is_whole)),
        ]
    cells.append(Text(shapes_text(module.outputs, 2)))
    if has_times:
        cells.append(Text("" if row.us_per_step is None else format_ms(row.us_per_step)))
        cells.append(Text("" if row.step_pct is None else format_pct(row.step_pct)))
    cells.append(Text("" if module.built_at is None else _clean(where_text(module.built_at)), "dim"))
    return cells


def _remarks(module: Module) -> list[str]:
    found = [module.note] if module.note else []
    if not module.is_certain:
        found.append("not certain")
    if module.has_more:
        found.append("and more, their number is not known")
    return found


def _clean(text: str) -> str:
    return printable(one_line(text)) if text.strip() else text


def to_json(found: Sequence[Model]) -> str:
    """The models as one JSON object, indented, ending in a newline."""
    document = {"models": [_model(one) for one in found]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _model(one: Model) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(one)
    _add_totals(built["root"], one.root)
    return built


def _add_totals(built: dict[str, Any], module: Module) -> None:
    built["totals"] = msgspec.to_builtins(module.totals())
    for below, child in zip(built["children"], module.children, strict=True):
        _add_totals(below, child)
