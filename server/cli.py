"""The command line. Each command is a file of `commands/`, imported when called: starting the daemon stays quick."""

from __future__ import annotations

import importlib
import io
import signal
import sys
import traceback

import click

COMMANDS = ("analyze", "fix", "record", "model", "serve", "patterns", "train", "doctor")
FAILED = 2
INTERRUPTED = 130
"""What shells give for a program that Ctrl-C ended."""


class LazyGroup(click.Group):
    """A group whose command `name` is the function `name` of the module `commands.name`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, the main one first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        return getattr(importlib.import_module(f".commands.{cmd_name}", __package__), cmd_name)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="torchtraceap")
def cli() -> None:
    """Find performance anti-patterns in PyTorch profiler traces, on the source lines that cause them."""


def main() -> None:
    """Run the command line. Errors exit with 2, so that 1 can mean findings."""
    if sys.argv[1:2] != ["serve"]:
        _write_as_a_filter()
    try:
        code = cli.main(prog_name="torchtraceap", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(FAILED)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except OSError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(FAILED)
    except Exception:  # noqa: BLE001  a fault of ours must not exit with 1, which means findings
        traceback.print_exc()
        sys.exit(FAILED)
    sys.exit(code if isinstance(code, int) else 0)


def _write_as_a_filter() -> None:
    """Write anything to any terminal, and end in silence once nobody reads on (`| head`), as other tools do."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.platform != "win32":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


if __name__ == "__main__":
    main()
