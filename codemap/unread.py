"""Which files could not be read, and why: what they hold is missing in all that is told of the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from .knowledge import Knowledge
from .notebook import Notebook

_MOST_NAMED = 5
_MOST_TEXT = 200


def unread(known: Knowledge, paths: Iterable[str], most: int = 2000) -> tuple[str, ...]:
    """A sentence for each of the first files, in order, of which something could not be read. At most `most` files
    are looked at."""
    found = [text for path in islice(paths, most) for text in _problems(known, path)]
    named = tuple(found[:_MOST_NAMED])
    return (*named, f"{len(found) - _MOST_NAMED} more could not be read") if len(found) > _MOST_NAMED else named


def _problems(known: Knowledge, path: str) -> Iterator[str]:
    file = known.workspace.file(path)
    if file is None:
        yield f"{path} could not be read: it is too large, no regular file, or must not be opened"
        return
    if file.error:
        why = file.error.removeprefix("line None: ")  # of a NUL byte Python tells no line
        yield f"{path} could not be read: {why[:_MOST_TEXT]}"
    notebook = file.derived.get(Notebook)
    if isinstance(notebook, Notebook):
        for problem in notebook.problems:
            yield f"{path} could not be read whole: {problem[:_MOST_TEXT]}"
