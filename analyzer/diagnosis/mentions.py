"""What a sentence says in figures: its numbers with their units, shapes, settings, and names that hold digits.

Reads plain text (see plain.py). It is strict: what looks like a figure and cannot be read for certain is `Odd`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import zip_longest

from .number_words import FACTORS, MAGNITUDES, VAGUE, WORDS, value_of
from .units import COUNT, UNIT_PATTERN, Measure, Unit, unit_of


@dataclass(frozen=True, slots=True)
class Number:
    """A figure. It stands for what lies within `half_width` of `value`: half of its last digit."""

    text: str
    value: float
    half_width: float
    unit: Unit = COUNT
    per: str = ""
    """`step` of "3 per step"."""
    before: str = ""
    """The few letters before it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """`8x64x56x56`, `[8, 64]`."""

    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """A word with digits or a number's word in it, which is no figure: `Conv2d_3`, `fp16`, `2.4.1`, `1x1conv`."""

    text: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A piece of code with a number in it, without spaces: `num_workers=0`, `shape[0]`."""

    text: str


@dataclass(frozen=True, slots=True)
class Odd:
    """What cannot be read for certain, such as `3/4`, `9,8` or `dozens`."""

    text: str


Mention = Number | Shape | Name | Setting | Odd
_Read = tuple[Mention | None, int]
"""What was read, and where it ends."""

_WORD = f"(?:{'|'.join(sorted(WORDS, key=len, reverse=True))})"
_TOKEN = re.compile(
    rf"""
      (?P<setting> (?<!\w) [^\W\d][\w.]* (?: \s?=\s?-?\d(?:[\w.]*\w)? | \[-?\d+\] ) )
    | (?P<shape> (?<![\w.]) \d+ (?: \s?[x×]\s?\d+ )+ (?! [\w%] | \.\d) | [\[(] \d+ (?: ,\s?\d+ )+ ,?\s? [\])] )
    | (?P<words> \b{_WORD}\b (?: (?:\s|-|\sand\s) {_WORD}\b )* )
    | (?P<fold> \b{_WORD}fold\b )
    | (?P<times> \bx\d+ (?: \.\d+ )? \b )
    | (?P<name> [^\W\d]\w* (?: (?:\.|::) \w+ )* )
    | (?P<version> \d+ (?: \.\d+ ){{2,}} \w* )
    | (?P<number> (?: (?<![\w)\]]) [-+−] )?
        (?: (?: \d{{1,3}} (?P<by>[,_' ]) \d{{3}} (?: (?P=by) \d{{3}} )* (?!\d) | \d+ ) (?: \.\d+ )? | \.\d+ ) )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_UNIT = re.compile(rf"[\s-]?({UNIT_PATTERN})", re.IGNORECASE)
_PER = re.compile(r"\s?(?:\bper\b|/)\s?(\w+)", re.IGNORECASE)
_MAGNITUDE = re.compile(rf"[\s-]({'|'.join(MAGNITUDES)})\b", re.IGNORECASE)
_JOINED = re.compile(r"\s\d|,\d|\s?[/:^*·'_.]\s?\d|\spoint\b|\*\*", re.IGNORECASE)
"""Behind a number: what makes another one of it and the next."""
_LINKS = frozenset({"-", "–", "—", "to", "and", "or", "of", "of the", "out of", "->", "→"})
"""Between two numbers that share the unit of the second."""
_SUFFIX = re.compile(r"\w*")
_ROMAN = re.compile(r"[IVXLCDM]+")
_PARTS = re.compile(r"[\W_]+")
_SHORT_MAGNITUDES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
_DIMENSIONS = frozenset({"1d", "2d", "3d"})
_BEFORE = 16


def mentions(text: str) -> list[Mention]:
    """All that `text` says in figures, in order."""
    found: list[tuple[int, int, Mention]] = []
    at = 0
    while (token := _TOKEN.search(text, at)) is not None:
        mention, at = _READERS[token.lastgroup or ""](token, text)
        if mention is not None:
            found.append((token.start(), at, mention))
    return [
        one if following is None else _with_unit_of_next(one, text[end : following[0]], following[2])
        for (_, end, one), following in zip_longest(found, found[1:])
    ]


def _with_unit_of_next(one: Mention, between: str, following: Mention) -> Mention:
    """`9.8` of "9.8 of 22.3 ms" is in ms."""
    if not (isinstance(one, Number) and isinstance(following, Number)):
        return one
    if one.unit is not COUNT or one.per or between.strip().lower() not in _LINKS:
        return one
    return replace(one, unit=following.unit, per=following.per)


def _setting(token: re.Match[str], text: str) -> _Read:
    if _UNIT.match(text, token.end()):
        return Odd(token[0]), token.end()
    return Setting(re.sub(r"\s", "", token[0])), token.end()


def _shape(token: re.Match[str], text: str) -> _Read:
    return Shape(tuple(map(int, re.findall(r"\d+", token[0])))), token.end()


def _words(token: re.Match[str], text: str) -> _Read:
    if re.match(r"\spoint\b", text[token.end() :]):
        return Odd(token[0]), token.end()
    number, end = _measured(Number(token[0], value_of(token[0]), 0.5), token, token.end(), text)
    if token[0].lower() == "one" and number.unit is COUNT:
        return None, token.end()  # hardly ever a figure: "one of the layers", "in one call"
    return number, end


def _fold(token: re.Match[str], text: str) -> _Read:
    return Number(token[0], value_of(token[0][: -len("fold")]), 0.5, Unit(Measure.FACTOR)), token.end()


def _times(token: re.Match[str], text: str) -> _Read:
    digits = token[0][1:]
    return Number(token[0], float(digits), _half_width(digits), Unit(Measure.FACTOR)), token.end()


def _name(token: re.Match[str], text: str) -> _Read:
    """A word: most say nothing in figures."""
    word, end = token[0], token.end()
    if word.lower() in VAGUE or (_ROMAN.fullmatch(word) and _UNIT.match(text, end)):
        return Odd(word), end
    factor = FACTORS.get(word.lower())
    if factor is not None and not re.match(r"[\s-]precision\b", text[end:], re.IGNORECASE):
        return Number(word, factor, 0.05, Unit(Measure.FACTOR)), end
    has_figure = re.search(r"\d", word) or any(part in WORDS for part in _PARTS.split(word.lower()))
    return (Name(word) if has_figure else None), end


def _version(token: re.Match[str], text: str) -> _Read:
    return Name(token[0]), token.end()


def _number(token: re.Match[str], text: str) -> _Read:
    end = token.end()
    if _JOINED.match(text, end) or text[: token.start()].rstrip().endswith("$"):
        return Odd(token[0]), end
    digits = re.sub(r"[,_' +]", "", token[0]).replace("−", "-")
    number = Number(token[0], float(digits), _half_width(digits))
    suffix = _SUFFIX.match(text, end)
    if not suffix or not suffix[0] or _UNIT.match(text, end):
        return _measured(number, token, end, text)
    if (times := _SHORT_MAGNITUDES.get(suffix[0])) is not None:
        return _measured(_scaled(number, times), token, suffix.end(), text)
    if suffix[0].lower() in _ORDINALS:
        return number, suffix.end()
    word = token[0] + suffix[0]
    return (None if word.lower() in _DIMENSIONS else Name(word)), suffix.end()


def _measured(number: Number, token: re.Match[str], end: int, text: str) -> tuple[Number, int]:
    """The number with what follows it: `million`, a unit, `per step`."""
    number = replace(number, before=text[max(token.start() - _BEFORE, 0) : token.start()])
    if (magnitude := _MAGNITUDE.match(text, end)) is not None:
        number, end = _scaled(number, MAGNITUDES[magnitude[1].lower()]), magnitude.end()
    if (unit := _UNIT.match(text, end)) is not None:
        number, end = replace(number, unit=unit_of(unit[1]) or COUNT), unit.end()
    if (per := _PER.match(text, end)) is not None:
        number, end = replace(number, per=per[1].lower()), per.end()
    return number, end


def _scaled(number: Number, times: float) -> Number:
    return replace(number, value=number.value * times, half_width=number.half_width * times)


def _half_width(digits: str) -> float:
    return 0.5 * 10.0 ** -len(digits.partition(".")[2])


_READERS = {
    "setting": _setting,
    "shape": _shape,
    "words": _words,
    "fold": _fold,
    "times": _times,
    "name": _name,
    "version": _version,
    "number": _number,
}
