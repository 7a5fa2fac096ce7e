"""Text that others wrote (source, names of events, modules and tags), made safe to stand in a prompt.

A trace or a source file may hold anything, on purpose or by chance. What stands in a prompt between `OPEN` and `CLOSE`
can neither end that part, nor pass for a turn of the conversation: no token that a chat template or an infilling
format gives a meaning to survives `neutral`, and no character that is invisible or steers.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

OPEN, CLOSE = "<<<", ">>>"
"""What other people's text stands between."""
LONGEST_NAME = 56
LONGEST_LINE = 160
LONGEST_SENTENCE = 320
_TAB = "    "
_GAP = "…"

_SPECIAL = re.compile(
    r"""
    <(?=[|｜])                         # <|im_start|>, <|eot_id|>, <｜User｜>
    | (?<=[|｜])>
    | <(?=/?(?:                        # llama, gemma, codellama's infilling, StarCoder's and SmolLM's files
        s|unk|pad|bos|eos|cls|sep|mask|think|tool_call|tool_response|image|start_of_turn|end_of_turn|endoftext|
        start_of_image|end_of_image|pre|suf|mid|eot|fill_me|fim_\w+|fim-\w+|file_sep|filename|repo_name|reponame|
        gh_stars|issue_\w+|jupyter_\w+|empty_output|commit_\w+|intermediate_to_script|extra_id_\d+|unused\d+|
        0x[0-9a-f]{2}|reserved_\w+
      )>)
    | \[(?=/?(?:INST|SYS|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|IMG|SYSTEM_PROMPT)\])
    | <(?=</?SYS>)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_DELIMITER = re.compile(r"(?<=<)<(?=<)|(?<=>)>(?=>)")
_PARAMETERS = re.compile(r"<[^<>]*>|\((?!anonymous)[^()]*\)(?: const)?")
_REST = re.compile(r"(?:<|\((?!anonymous)).*")
_SPACES = re.compile(r"\s+")


def neutral(text: str) -> str:
    """`text` on one line, with nothing in it that steers: characters without a picture go, what a model could take for
    a special token or for the end of the quotation is broken up by a space. Leading spaces stay."""
    text = "".join(_visible(character) for character in text.replace("\t", _TAB))
    text = _SPECIAL.sub(lambda found: found[0] + " " if found[0] != ">" else " >", text)
    return _DELIMITER.sub(lambda found: f" {found[0]}", text)


def sentence(text: str, most: int = LONGEST_SENTENCE) -> str:
    """Prose, neutral, its spaces joined and its end cut off where it is too long."""
    text = _SPACES.sub(" ", neutral(text)).strip()
    return text if len(text) <= most else text[: most - 1].rstrip() + _GAP


def code(line: str) -> str:
    """One line of source, neutral; its indentation is kept."""
    line = neutral(line.rstrip())
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + _GAP


def name(text: str, most: int = LONGEST_NAME) -> str:
    """What an event, a module or a file is called, neutral and short: a C++ kernel without its template's and its
    function's parameters, anything else too long without its middle."""
    text = _SPACES.sub(" ", text).strip()
    if len(text) > most and "<" in text:
        text = _without_parameters(text)
    text = _SPACES.sub(" ", neutral(text)).strip()
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return text[:head] + _GAP + text[len(text) - (most - 1 - head) :]


def _without_parameters(text: str) -> str:
    """`void at::native::add<128, F<int> >(int, F)` as `at::native::add`."""
    text = text.removeprefix("void ")
    while (bare := _PARAMETERS.sub("", text)) != text:
        text = bare
    return _REST.sub("", text)


@cache
def _visible(character: str) -> str:
    """The character; a space for one that ends a line or that has no picture."""
    if character.isascii():
        return character if " " <= character <= "~" else " "
    return " " if unicodedata.category(character)[0] in "CZ" else character
