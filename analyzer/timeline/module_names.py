"""What the modules round an event are called: by the recording run's tags, else by their class and number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..trace.model import Category
from ..trace.recording import MODULE_TAG
from .model import Timeline
from .roots import MODULE_PREFIX


def tagged_path(name: str) -> str:
    """The path in the model that a range of a recording run names; "" for any other name."""
    return name.removeprefix(MODULE_TAG).partition(" ")[0] if name.startswith(MODULE_TAG) else ""


def modules_round(timeline: Timeline, row: int) -> Iterator[str]:
    """Names of the modules whose calls enclose host event `row`, innermost first.

    `layer1.0.conv1` where the call is tagged, else `Conv2d_3`; none without either.
    """
    trace, is_tagged = timeline.trace, False
    for outer in (row, *timeline.tree.ancestors(row)):
        name = trace.name_of(outer)
        if trace.cat[outer] == Category.USER_ANNOTATION and (path := tagged_path(name)):
            yield path
            is_tagged = True
        elif trace.cat[outer] == Category.PYTHON_FUNCTION and name.startswith(MODULE_PREFIX):
            if not is_tagged:
                yield name.removeprefix(MODULE_PREFIX)
            is_tagged = False


def innermost_modules(timeline: Timeline, row: int) -> tuple[str, str]:
    """Names of the innermost two modules round a row; "" where there are none."""
    first, second = (*islice(modules_round(timeline, row), 2), "", "")[:2]
    return first, second
