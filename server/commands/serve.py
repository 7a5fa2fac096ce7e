"""`torchtraceap serve`: the language server."""

from __future__ import annotations

import click

from ..app import serve as run


@click.command()
@click.option("--stdio", is_flag=True, expose_value=False, help="What it does anyway; some editors say so.")
def serve() -> int:
    """Start the language server on stdin and stdout, for an editor to talk to."""
    return run()
