"""Numbers in English words."""

from __future__ import annotations

import re

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
MAGNITUDES = {"dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
FACTORS = {
    word: value
    for value, words in {
        2.0: "twice double doubles doubled",
        3.0: "thrice triple triples tripled",
        4.0: "quadruple quadruples quadrupled",
    }.items()
    for word in words.split()
}
"""How many times as much a word says."""
VAGUE = frozenset({"dozens", "hundreds", "thousands", "millions", "billions"})

_VALUES = {word: float(value) for value, word in enumerate(_SMALL.split())}
_VALUES |= {word: 10.0 * value for value, word in enumerate(_TENS.split(), 2)}
WORDS = (*_VALUES, *MAGNITUDES)
_BETWEEN = re.compile(r"(?:\s|-|\band\b)+")


def value_of(words: str) -> float:
    """`two hundred and five` as 205. Each word is one of `WORDS`, but for `and`."""
    total = part = 0.0
    for word in _BETWEEN.split(words.lower()):
        if word not in MAGNITUDES:
            part += _VALUES[word]
        elif MAGNITUDES[word] <= 100.0:
            part = (part or 1.0) * MAGNITUDES[word]
        else:
            total += (part or 1.0) * MAGNITUDES[word]
            part = 0.0
    return total + part
