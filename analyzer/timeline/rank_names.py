"""The rank that a trace's file name tells, and what is left of the name without it."""

from __future__ import annotations

import re
from pathlib import PurePath

from ..trace.model import NONE
from ..trace.scalars import whole_number

_RANK = re.compile(r"(?i)(?<![a-z])(global_?rank|rank|worker|proc(?:ess)?|gpu|node_?\d+_?gpu|r)[-_.=]?(\d{1,6})(?!\d)")
"""A word for "rank" with its number: `rank3`, `worker0_step_12`, `trace.gpu-1`."""
_TIME = re.compile(r"(?<!\d)(1\d{12}|1\d{18})(?!\d)")
"""Milliseconds or nanoseconds since 1970, as the profiler's trace handlers write them."""
_NUMBER = re.compile(r"\d+")


def rank_in_name(path: str) -> int:
    """The rank that a file's name, else its folder's, says; NONE if neither does."""
    for part in reversed(PurePath(path).parts[-2:]):
        if found := _RANK.search(part):
            return whole_number(found[2])
    return NONE


def time_in_name_ns(path: str) -> int:
    """When the trace was written as its file's name says, in ns since 1970; NONE if it does not."""
    found = _TIME.search(PurePath(path).name)
    if not found:
        return NONE
    number = whole_number(found[1])
    return number * 1_000_000 if len(found[1]) == 13 else number


def name_without_rank(path: str) -> str:
    """The path with its rank and its time taken out: equal for the files that one run's ranks write at one time."""
    parts = PurePath(path).parts
    ends = [_RANK.sub(r"\1#", _TIME.sub("#", part)) for part in parts[-2:]]
    return "/".join((*parts[:-2], *ends))
