"""What a dossier holds, for looking up what a sentence says of it: figures by id, and names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ..findings import Evidence
from .dossier import Dossier
from .figures import figures_of
from .mentions import Mention, Name, Number, Odd, Setting, Shape, mentions
from .plain import plain
from .units import COUNT, UNIT_PATTERN, Measure, Unit, unit_of

_RATIO = re.compile(r"probab|share|ratio|fraction|portion|utili[sz]|occupan|P\(|hit", re.IGNORECASE)
"""In the name of a figure without unit: 1 of it is 100 %."""
_MOST_OFF = 0.25
"""Of the figure. A digit that stands for less ("1 s" for 600 ms) is no rounding but another figure."""
_LEAST_SHOWN = 0.0005
_LEAST_SHOWN_PCT = 0.5
"""Figures are shown to this, however little is left of them then."""
_STEP_WORDS = frozenset({"", "step", "steps", "iteration", "window"})
_FILLERS = re.compile(r"\b(?:of|x|to|and|in|per|a|step|steps|each|times)\b|[^\w]|\d|μ", re.IGNORECASE)
_HIDDEN = re.compile(rf"\d_?{UNIT_PATTERN}$", re.IGNORECASE)
_LINE = re.compile(r"(?:\blines?\s|\.py:|\bline \d+\s?(?:-|–|to|and)\s?)$", re.IGNORECASE)
_VERSION = re.compile(r"\b(?:torch|pytorch|cuda|python|version|v)[\s-]?$", re.IGNORECASE)


@dataclass(frozen=True)
class Known:
    """A dossier, asked what it holds."""

    dossier: Dossier

    @cached_property
    def figures(self) -> dict[str, tuple[Evidence, ...]]:
        """By id."""
        by_id: dict[str, tuple[Evidence, ...]] = {}
        for figure in (*figures_of(self.dossier), *self.dossier.evidence):
            by_id[figure.id] = (*by_id.get(figure.id, ()), figure)
        return by_id

    def holds(self, mention: Mention, cited: Iterable[Evidence]) -> bool:
        """Whether what a sentence says is so, by the figures it cites."""
        match mention:
            case Number():
                return any(_equals(mention, figure) for figure in cited) or self._is_label(mention)
            case Shape(sizes):
                return any(_is_part(sizes, held) for figure in cited for held in _shapes(figure)) or self.names(
                    "x".join(map(str, sizes))
                )
            case Name(text):
                return _HIDDEN.search(text) is None and self.names(text)
            case Setting(text):
                return text in self._code
            case Odd():
                return False

    def names(self, word: str) -> bool:
        """Whether a word stands somewhere in the dossier, whole."""
        return re.search(rf"(?<![^\W_]){re.escape(word.lower())}(?![^\W_])", self._texts) is not None

    def _is_label(self, number: Number) -> bool:
        """Whether it is the number of a line that is there, or a version."""
        source = self.dossier.source
        if number.unit is not COUNT or number.per:
            return False
        if source is not None and _LINE.search(number.before):
            return number.text.isdecimal() and 0 <= int(number.text) - source.first_line < len(source.lines)
        return _VERSION.search(number.before) is not None and self._is_version(number.text)

    def _is_version(self, text: str) -> bool:
        version = self.dossier.torch_version
        return version == text or version.startswith((f"{text}.", f"{text}+"))

    @cached_property
    def _texts(self) -> str:
        """All names and sentences, no figure among them."""
        one = self.dossier
        texts = [one.slug, one.summary, one.device, one.torch_version, *one.missing]
        texts += [text for choice in one.choices for text in (choice.slug, choice.meaning)]
        texts += [text for fix in one.fixes for text in (fix.id, fix.title)]
        texts += [text for item in one.evidence for text in (item.id, item.name, _wordy(item.value))]
        texts += [text for row in (*one.tree, *one.layers) for text in (row.id, row.name)]
        texts += self.figures
        if one.source is not None:
            texts += [one.source.path, one.source.qualname, *one.source.lines]
        return "\n".join(texts).lower()

    @cached_property
    def _code(self) -> str:
        """Source without comments, and what fixes put in, without spaces."""
        lines = self.dossier.source.lines if self.dossier.source is not None else ()
        texts = [*(line.partition("#")[0] for line in lines), *(fix.title for fix in self.dossier.fixes)]
        return re.sub(r"[^\S\n]", "", "\n".join(texts))


def _equals(number: Number, figure: Evidence) -> bool:
    """Whether a number is a figure, rounded to the digits written."""
    if number.per not in _STEP_WORDS and number.per not in f"{figure.name} {figure.unit}".lower():
        return False
    return any(
        _is_rounded(number, value * scale / number.unit.scale, measure)
        for value, scale, measure in _values(number, figure)
    )


def _values(number: Number, figure: Evidence) -> Iterator[tuple[float, float, Measure]]:
    """The figure's values that a number of that unit may stand for, in the scale of the unit's measure."""
    asked = number.unit.measure
    for value, unit, is_ratio in _readings(figure):
        if unit.measure is asked and not is_ratio:
            yield value, unit.scale, asked
        elif asked is Measure.SHARE and is_ratio:
            yield value, 100.0, asked
        elif asked is Measure.COUNT and "." in number.text and (is_ratio or unit.measure is Measure.SHARE):
            yield value, 1.0 if is_ratio else 0.01, asked
        elif {asked, unit.measure} == {Measure.COUNT, Measure.FACTOR} and not is_ratio:
            yield value, 1.0, asked


def _readings(figure: Evidence) -> Iterator[tuple[float, Unit, bool]]:
    """Value, unit and whether 1 is all of it, of a figure; of a text, its numbers if it says little else."""
    if isinstance(figure.value, str):
        yield from ((one.value, one.unit, False) for one in _numbers(figure.value))
    elif math.isfinite(figure.value):
        unit = unit_of(figure.unit) or COUNT
        is_ratio = unit is COUNT and 0.0 <= figure.value <= 1.0 and _RATIO.search(figure.name) is not None
        yield float(figure.value), unit, is_ratio


def _is_rounded(number: Number, value: float, measure: Measure) -> bool:
    off = abs(number.value - value)
    least = _LEAST_SHOWN_PCT if measure is Measure.SHARE else _LEAST_SHOWN
    return off <= number.half_width * (1.0 + 1e-6) and off <= max(_MOST_OFF * abs(value), least)


def _numbers(text: str) -> list[Number]:
    """Of a text that is little else: `1 of 9`, `12.1 of 16 GB`."""
    return [] if _wordy(text) else [one for one in mentions(plain(text) or "") if isinstance(one, Number)]


def _shapes(figure: Evidence) -> list[tuple[int, ...]]:
    """The shapes that a figure names."""
    if not isinstance(figure.value, str):
        return []
    return [one.sizes for one in mentions(plain(figure.value) or "") if isinstance(one, Shape)]


def _is_part(sizes: tuple[int, ...], held: tuple[int, ...]) -> bool:
    """Whether some sizes follow each other in a shape."""
    return any(held[at : at + len(sizes)] == sizes for at in range(len(held)))


def _wordy(value: float | str) -> str:
    """A value that is words; "" for one that is figures and units."""
    if not isinstance(value, str):
        return ""
    rest = _FILLERS.sub(" ", re.sub(rf"(?<![^\W\d]){UNIT_PATTERN}", " ", value, flags=re.IGNORECASE))
    return value if rest.strip(" _") else ""
