"""The text of a notebook's cell as plain Python of the same lines and columns.

IPython's own syntax (`%magic`, `!command`, `help?`) stands only where a statement could begin, or behind `name =`. It
is replaced by the expression `0`, filled up with blanks, so that everything else keeps its place. Code that a magic
runs (`%time step(x)`, a cell under `%%time`) is kept.
"""

from __future__ import annotations

import re

_RUNS_ITS_LINE = re.compile(r"%(?:time|timeit|prun|memit|mprun|lprun)\b(?:[ \t]+-\w+(?:[ \t]+\d+)?)*[ \t]*")
_RUNS_ITS_CELL = re.compile(r"%%(?:time|timeit|prun|memit|capture|mprun|lprun|scalene|snakeviz|heat|px|debug)\b")
_ASSIGNED = re.compile(r"(?P<before>[ \t]*[\w.,\[\]* \t]+=[ \t]*)(?P<magic>[!%].*)")
_HELP = re.compile(r"[ \t]*[\w.*%]+\?{1,2}[ \t]*")
_TOKEN = re.compile(
    r"""
    (?P<open>\"{3}|'{3}) | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | \#.*
    | (?P<deeper>[(\[{]) | (?P<higher>[)\]}])
    """,
    re.VERBOSE,
)


def plain_lines(lines: tuple[str, ...]) -> list[str]:
    """The lines of a cell with IPython's syntax taken out: as many, of the same lengths. All are empty where the cell
    is in another language (`%%bash`)."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%") and not _RUNS_ITS_CELL.match(lines[first]):
        return [""] * len(lines)
    found: list[str] = []
    nesting = _Nesting()
    is_magic = False
    for number, line in enumerate(lines):
        if is_magic:  # goes on behind a backslash
            found.append("")
            is_magic = line.endswith("\\")
            continue
        plain = line if nesting.is_inside else _plain(line, is_first=number == first)
        is_magic = plain is not line and line.endswith("\\")
        nesting.read(plain)
        found.append(plain)
    return found


def body_start(lines: tuple[str, ...]) -> int:
    """How many lines stand before the first that IPython counts: empty ones are dropped."""
    return next((number for number, line in enumerate(lines) if line.strip()), 0)


def is_timed(lines: tuple[str, ...]) -> bool:
    """Whether the whole cell is run by a magic, which counts lines from the next one."""
    return lines[body_start(lines)].startswith("%%") and bool(_RUNS_ITS_CELL.match(lines[body_start(lines)]))


def transformed(lines: tuple[str, ...]) -> str:
    """The text that IPython compiles for a cell of plain Python, whole-line magics and commands among it."""
    kept = lines[body_start(lines) :]
    while kept and not kept[-1]:
        kept = kept[:-1]
    if kept and kept[0].startswith("%%"):
        name, _, rest = kept[0][2:].partition(" ")
        body = "".join(line + "\n" for line in kept[1:])
        return f"get_ipython().run_cell_magic({name!r}, {rest!r}, {body!r})\n"
    return "".join(_transformed(line) + "\n" for line in kept)


def _transformed(line: str) -> str:
    bare = line.lstrip()
    indent = line[: len(line) - len(bare)]
    if bare.startswith("!") and not bare.startswith("!!"):
        return f"{indent}get_ipython().system({bare[1:].lstrip()!r})"
    if bare.startswith("%"):
        name, _, rest = bare[1:].partition(" ")
        return f"{indent}get_ipython().run_line_magic({name!r}, {rest.strip()!r})"
    return line


def _plain(line: str, is_first: bool) -> str:
    bare = line.lstrip()
    indent = line[: len(line) - len(bare)]
    if is_first and bare.startswith("%%"):
        return _filled(indent, line)
    if run := _RUNS_ITS_LINE.match(bare):
        rest = bare[run.end() :]
        return _filled(f"{indent}0;", line, len(line) - len(rest)) + rest if rest else _filled(indent + "0", line)
    if bare.startswith(("%", "!", "?")) or _HELP.fullmatch(line):
        return _filled(indent + "0", line)
    if assigned := _ASSIGNED.fullmatch(line):
        return _filled(assigned["before"] + "0", line)
    return line


def _filled(start: str, line: str, width: int | None = None) -> str:
    return start.ljust(len(line) if width is None else width)


class _Nesting:
    """Whether a line begins inside brackets or a string of several lines, or goes on from the one before."""

    def __init__(self) -> None:
        self._depth = 0
        self._quotes = ""
        self._goes_on = False

    @property
    def is_inside(self) -> bool:
        return self._depth > 0 or self._goes_on or bool(self._quotes)

    def read(self, line: str) -> None:
        position = 0
        while True:
            if self._quotes:
                end = line.find(self._quotes, position)
                if end < 0:
                    return
                position, self._quotes = end + 3, ""
            token = _TOKEN.search(line, position)
            if token is None:
                break
            position = token.end()
            if token["open"]:
                self._quotes = token["open"]
            elif token["deeper"]:
                self._depth += 1
            elif token["higher"]:
                self._depth = max(self._depth - 1, 0)
        self._goes_on = line.endswith("\\")
