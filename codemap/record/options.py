"""What was asked of a recording run; handed to the recorded processes in one environment variable."""

from __future__ import annotations

import msgspec

VARIABLE = "TORCHTRACEAP_RECORD"
"""Holds the options, as JSON, for every process below `torchtraceap record`."""
DEFAULT_FOLDER = "runs/torchtraceap"
"""Where traces go; below `runs/`, which the language server watches by default."""
MOST_NAME_BYTES = 160
"""File systems take 255; the rest is for what may be put behind: rank, process, time and the ending."""


class RecordOptions(msgspec.Struct, frozen=True):
    """The options of one run."""

    folder: str = DEFAULT_FOLDER
    """Where traces go. Relative to the folder in which recording began, wherever the program goes after that."""
    name: str = ""
    """What the trace files are called, without ending; "" for the script's name and the time."""
    iterations: int = 100
    """Light steps, without stacks, for the statistics."""
    full: int = 4
    """Steps with stacks, shapes, memory and modules."""
    warm_up: int = 5
    """Steps at least that are let pass first."""
    attention: bool = False
    counters: bool = False
    ncu: str = ""
    """A CSV file of Nsight Compute to join; "" for none."""
    command: tuple[str, ...] = ()
    reports: str = ""
    """Folder in which each recorded process leaves a word of what it did; "" to leave none."""


def encode(options: RecordOptions) -> str:
    """As the value of `VARIABLE`."""
    return msgspec.json.encode(options).decode()


def name_problem(name: str) -> str:
    """Why trace files cannot be called so; "" if they can. Only a plain name is sure to stay in the folder."""
    if name in (".", "..") or "/" in name or "\\" in name or not name.isprintable():
        return f"{name!r} is no plain file name"
    if (size := len(name.encode())) > MOST_NAME_BYTES:
        return f"the name has {size} bytes; {MOST_NAME_BYTES} are the most"
    return ""


def shortened(name: str) -> str:
    """A name that we chose ourselves, cut to what leaves room for the time behind it."""
    return name.encode()[: MOST_NAME_BYTES - 20].decode(errors="ignore")


def decode(text: str) -> RecordOptions | None:
    """The options in a value of `VARIABLE`; None if there are none in it."""
    try:
        return msgspec.json.decode(text, type=RecordOptions)
    except (msgspec.DecodeError, UnicodeError):
        return None
