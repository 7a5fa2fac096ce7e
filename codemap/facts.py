"""What one file's text says, found without parsing it: enough to tell which files a question is about.

A workspace of thousands of files is not parsed to find the one that defines a class. Its texts are read through once,
by regular expressions that know strings and comments, and only this is kept of each: some kilobytes. The facts are a
filter: what they do not name is not in the file, and what they name is looked up in the parsed file.
"""

from __future__ import annotations

import re
import sys
import zlib
from array import array
from collections.abc import Iterator
from functools import lru_cache

import msgspec

_DEFINITION = re.compile(
    r"""
    (?P<quotes>\"{3}|'{3})(?s:.)*?(?:(?P=quotes)|\Z)
    | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'
    | \#[^\n]*
    | ^(?P<indent>[ \t]*)(?:
        (?P<decorator>@)
        | (?P<block>if|elif|else|for|while|with|try|except|finally|return)\b
        | (?:async[ \t]+)?def[ \t]+(?P<function>\w+)
        | class[ \t]+(?P<class>\w+)(?:[ \t]*\((?P<bases>[^:]{0,400}?)\)[ \t]*:)?
      )
    """,
    re.VERBOSE | re.MULTILINE,
)
_WORD = re.compile(r"(?:def|class)[ \t]+\w+|[^\W\d]\w*\(?")
_SPACE = re.compile(r"\s+")
_WIDTH = 4
"""Bytes of a word's hash and of a line's number."""


class Defined(msgspec.Struct, frozen=True):
    """A function or class that a file defines."""

    qualname: str
    line: int
    """Its first line: the first decorator's, else that of `def` or `class`."""
    bases: str | None
    """What stands in a class's parentheses; None for a function."""


class FileFacts(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The facts of one file, packed: thousands of them are in memory."""

    definitions: str = ""
    """A line for each function, `.Net.forward`, and class, `.Net(nn.Module)`, in the order of the text."""
    lines: bytes = b""
    """The first line of each, four bytes of this machine's order."""
    words: bytes = b""
    """A hash of every identifier, and one of each that is called; four bytes each."""
    mentions_torch: bool = False

    def holds(self, word: str) -> bool:
        """Whether the identifier `word` may stand anywhere in the text. False is certain."""
        return _hash(word) in self.words

    def calls(self, name: str) -> bool:
        """Whether something whose last name is `name` may be called. False is certain, but for a call whose
        parenthesis does not follow the name at once."""
        return _hash(name + "(") in self.words

    def defines(self, name: str) -> bool:
        """Whether a function or class is called `name`."""
        return f".{name}\n" in self.definitions or self.defines_class(name)

    def defines_class(self, name: str) -> bool:
        """Whether a class is called `name`."""
        return f".{name}(" in self.definitions

    def defined(self) -> Iterator[Defined]:
        """All functions and classes in the order of the text."""
        for written, line in zip(self.definitions.split("\n"), array("I", self.lines), strict=False):
            qualname, parenthesis, bases = written[1:].partition("(")
            yield Defined(qualname, line, bases[:-1] if parenthesis else None)

    @property
    def is_sound(self) -> bool:
        """Whether the parts agree, as they do unless somebody else wrote them."""
        return len(self.words) % _WIDTH == 0 and len(self.lines) == _WIDTH * self.definitions.count("\n")


def facts_of(text: str) -> FileFacts:
    """The facts of a text, which need not be Python."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    definitions, lines = _definitions(text)
    return FileFacts(definitions, lines, _words(text), "torch" in text)


def _words(text: str) -> bytes:
    hashes: set[int] = set()
    for word in set(_WORD.findall(text)):
        if word[-1] == "(":
            hashes.add(zlib.crc32(word.encode("utf-8", "surrogatepass")))
            word = word[:-1]
        elif not word.isidentifier():  # `def name`
            word = word.split()[-1]
        hashes.add(zlib.crc32(word.encode("utf-8", "surrogatepass")))
    return array("I", hashes).tobytes()


def _definitions(text: str) -> tuple[str, bytes]:
    written: list[str] = []
    lines = array("I")
    above: list[tuple[int, str]] = []
    """The functions and classes round the place reached, by their indentation."""
    decorator: tuple[int, int] | None = None
    """Indentation and line of the first decorator of what is defined next."""
    line, counted = 1, 0
    for match in _DEFINITION.finditer(text):
        if match["indent"] is None:
            continue
        line += text.count("\n", counted, match.start())
        counted = match.start()
        indent = len(match["indent"].expandtabs())
        if match["decorator"]:
            decorator = decorator if decorator is not None and decorator[0] == indent else (indent, line)
            continue
        while above and above[-1][0] >= indent:
            above.pop()
        if match["block"]:  # only ends what stood deeper
            continue
        name = match["function"] or match["class"]
        above.append((indent, name))
        bases = "" if match["function"] else f"({_SPACE.sub(' ', match['bases'] or '').strip()})"
        written.append("." + ".".join(each for _, each in above) + bases + "\n")
        lines.append(decorator[1] if decorator is not None and decorator[0] == indent else line)
        decorator = None
    return "".join(written), lines.tobytes()


@lru_cache(maxsize=4096)
def _hash(word: str) -> bytes:
    return zlib.crc32(word.encode("utf-8", "surrogatepass")).to_bytes(_WIDTH, sys.byteorder)
