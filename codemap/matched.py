"""The file of a workspace that a recorded path names, and how its lines are counted there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .labels import Label


@dataclass(frozen=True, slots=True)
class Matched:
    """The workspace file of a recorded path."""

    path: str
    confidence: float
    """Lower where the file was edited since, and where several files fit as well."""
    others: tuple[str, ...] = ()
    """Files that fit as well."""
    shift: int = 0
    """What a recorded line is short of: the lines of the notebook above the cell that was recorded as a file."""
    first_line: int = 0
    """The first line of that cell; 0 where it is a whole file."""

    @property
    def is_cell(self) -> bool:
        """Whether it is a notebook's cell, of which each statement at top level runs as a module of its own."""
        return self.first_line > 0

    def here(self, label: Label) -> Label:
        """A frame's label with the line as the file counts it."""
        if not self.is_cell:
            return label
        if label.name == "<module>" or label.name.startswith("<cell line:"):
            line = label.line + self.shift if label.line > 1 else self.first_line
            return replace(label, name="<module>", line=line)
        return replace(label, line=label.line + self.shift)
