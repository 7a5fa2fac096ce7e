"""How well a text of a file fits what a trace recorded of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from ..analyzer.trace.model import NONE, Category, Trace
from .labels import Kind, Label, parse_label
from .paths import is_library
from .source import SourceFile, parse_source


class Fit:
    """Compares texts with the frames of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._calls: Mapping[str, list[tuple[Label, str]]] | None = None

    def both(self, owner: str, labels: Sequence[Label], text: str) -> tuple[float, float]:
        """Shares of the recorded functions, and of the calls they made, that a text has."""
        if self._calls is None:
            self._calls = _calls(self._trace)
        file = _parsed(text)
        calls = self._calls.get(owner, [])
        held = [name in _words(_body(file, label)) for label, name in calls]
        return self.share(labels, text), sum(held) / max(len(held), 1)

    def share(self, labels: Sequence[Label], text: str) -> float:
        """Share of the recorded functions that stand where they were recorded."""
        named = [label for label in labels if label.name != "<module>"]
        file = _parsed(text)
        return sum(bool(_body(file, label)) for label in named) / len(named) if named else 1.0


def _calls(trace: Trace) -> dict[str, list[tuple[Label, str]]]:
    """What each recorded function called, by recorded file: the function's label and the bare name called."""
    rows = trace.rows(Category.PYTHON_FUNCTION)
    rows = rows[trace.python_id[rows] != NONE]
    order = np.argsort(trace.python_id[rows], kind="stable")
    ids, by_id = trace.python_id[rows][order], rows[order]
    if not len(ids):
        return {}
    position = np.minimum(np.searchsorted(ids, trace.python_parent[rows]), len(ids) - 1)
    is_known = ids[position] == trace.python_parent[rows]
    pairs = np.stack([trace.name[by_id[position]][is_known], trace.name[rows][is_known]], axis=1)
    found: dict[str, list[tuple[Label, str]]] = {}
    for parent, child in np.unique(pairs, axis=0).tolist():
        label, called = parse_label(trace.names[parent]), parse_label(trace.names[child])
        is_named = called.kind in (Kind.BUILTIN, Kind.FRAME) and called.name.isidentifier()
        if label.kind is Kind.FRAME and is_named and not is_library(label.owner):
            found.setdefault(label.owner, []).append((label, called.name))
    return found


@lru_cache(maxsize=64)
def _parsed(text: str) -> SourceFile:
    return parse_source("", text)


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


def _body(file: SourceFile, label: Label) -> str:
    """The text of a recorded function: of its name, and holding the recorded line; "" if there is none."""
    if label.name.startswith("<") and label.name not in ("<module>", "<lambda>"):
        return " ".join(file.lines[label.line - 1 : label.line]) if label.line <= len(file.lines) else ""
    spans = [
        (function.first_line != label.line, function.end_line - function.first_line, function)
        for function in file.functions
        if function.name == label.name and function.first_line <= label.line <= function.end_line
    ]
    if not spans:
        return ""
    function = min(spans, key=lambda span: span[:2])[2]
    return "\n".join(file.lines[function.first_line - 1 : function.end_line])
