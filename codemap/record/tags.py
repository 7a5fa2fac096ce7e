"""A named range around every module call of the full steps: `torchtraceap.module layer1.0.conv1 model.py:34`."""

from __future__ import annotations

import importlib
from typing import Any

from ...analyzer.trace.recording import MODULE_TAG
from .model import ModelSurvey
from .own import OwnFiles


class Tags:
    """Opens and closes the ranges; calls of modules nest, so they are a stack."""

    def __init__(self, survey: ModelSurvey, files: OwnFiles) -> None:
        """`survey` knows the modules' paths, `files` how files are shown."""
        self._survey = survey
        self._files = files
        self._names: dict[int, str] = {}
        self._open: list[tuple[int, Any]] = []
        self._make: Any = None

    @property
    def are_open(self) -> bool:
        """Whether a range is open."""
        return bool(self._open)

    def make_ready(self) -> None:
        """Form the names, so that no step has to; take the cheapest kind of range that this torch has."""
        fast = getattr(importlib.import_module("torch._C._profiler"), "_RecordFunctionFast", None)
        self._make = fast or importlib.import_module("torch.profiler").record_function
        for root in self._survey.roots.values():
            for module in root.modules():
                self._name(module)

    def open(self, module: Any) -> None:
        """A module begins."""
        name = self._names.get(id(module)) or self._name(module)
        span = self._make(name)
        span.__enter__()
        self._open.append((id(module), span))

    def close(self, module: Any) -> None:
        """A module ends."""
        if self._open and self._open[-1][0] == id(module):
            self._open.pop()[1].__exit__(None, None, None)

    def close_all(self) -> None:
        """The full steps end within modules' calls."""
        while self._open:
            self._open.pop()[1].__exit__(None, None, None)

    def _name(self, module: Any) -> str:
        name = MODULE_TAG + (self._survey.tag_of(module, self._files) or type(module).__name__)
        self._names[id(module)] = name
        return name
