"""Making JSON of what careless writers produce, one event at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BARE = rb"|(?P<bare>-?\b(?:inf(?:inity)?|nan)\b)"

_TOKEN = re.compile(
    # A string ends at a quote that is followed by what may follow a string; other quotes inside it were not escaped.
    rb'"(?P<string>(?:\\.|[^\\])*?)(?:"(?=\s*[,:}\]])|\Z)' + _BARE,
    re.DOTALL | re.IGNORECASE,
)
_PLAIN_TOKEN = re.compile(rb'"(?P<string>.*?)(?:"(?=\s*[,:}\]])|\Z)' + _BARE, re.DOTALL | re.IGNORECASE)
_BAD_ESCAPE = re.compile(rb'\\(?:[^"\\/bfnrtu]|u(?![0-9a-fA-F]{4})|\Z)', re.DOTALL)
_BARE_QUOTE = re.compile(rb'(\\.)|"', re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")


def repairs(text: bytes) -> Iterator[bytes]:
    """Versions of `text` that may be valid JSON, likeliest first.

    Invalid UTF-8 is replaced, control characters and inner quotes are escaped, bare `inf` and `NaN` become null. A
    string with any invalid escape is taken to hold plain backslashes only, as Windows paths do; in the second version
    a backslash before a closing quote is one too (`"C:\\logs\"`).
    """
    clean = text.decode("utf-8", errors="replace").encode()
    yield _TOKEN.sub(_repair_token, clean)
    yield _PLAIN_TOKEN.sub(_repair_plain_token, clean)


def _repair_token(match: re.Match[bytes]) -> bytes:
    string = match["string"]
    if string is None:
        return b"null"
    if _BAD_ESCAPE.search(string.replace(b"\\\\", b"")):
        string = string.replace(b"\\", b"\\\\")
    return _quote(_BARE_QUOTE.sub(lambda found: found[1] or b'\\"', string))


def _repair_plain_token(match: re.Match[bytes]) -> bytes:
    string = match["string"]
    return b"null" if string is None else _quote(string.replace(b"\\", b"\\\\").replace(b'"', b'\\"'))


def _quote(string: bytes) -> bytes:
    return b'"%b"' % _CONTROL.sub(lambda found: b"\\u%04x" % found[0][0], string)
