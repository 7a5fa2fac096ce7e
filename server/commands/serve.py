"""`torchtraceap serve`: the language server."""

from __future__ import annotations

import gc

import click


@click.command()
@click.option("--stdio", is_flag=True, expose_value=False, help="What it does anyway; some editors say so.")
def serve() -> int:
    """Start the language server on stdin and stdout, for an editor to talk to."""
    gc.disable()  # nothing of all that is imported can be collected, now or later
    from ..app import serve as run  # the protocol's types take half a second to import: not for `--help`

    gc.freeze()
    gc.enable()
    return run()
