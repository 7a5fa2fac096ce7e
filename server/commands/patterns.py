"""`torchtraceap patterns`: what can be found."""

from __future__ import annotations

import click
import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from ...analyzer.patterns.base import FixKind, Pattern
from ...analyzer.patterns.registry import all_patterns
from ..pages import page_uri


class Row(msgspec.Struct, frozen=True):
    """One pattern, as the JSON form gives it."""

    code: str
    slug: str
    title: str
    fix: FixKind
    group: str
    needs: tuple[str, ...]
    page: str | None


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def patterns(form: str) -> None:
    """List the anti-patterns that are looked for, and what kind of fix each has."""
    rows = [_row(pattern) for pattern in all_patterns()]
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("code", "slug", "fix"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what it is", overflow="fold")
    for row in rows:
        table.add_row(row.code, row.slug, row.fix.value, row.title)
    Console().print(table)


def _row(pattern: Pattern) -> Row:
    return Row(
        code=pattern.code,
        slug=pattern.slug,
        title=pattern.title,
        fix=pattern.fix,
        group=pattern.group,
        needs=pattern.needs,
        page=page_uri(pattern.slug),
    )
