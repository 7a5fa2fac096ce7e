"""What the server needs of the editor at the other end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from lsprotocol import types as lsp

from .notebooks import OpenNotebook

Report = Callable[[float, str], None]
"""Tells how far a job is: a fraction from 0 to 1, and what it is doing."""


class Document(Protocol):
    """An open document."""

    @property
    def uri(self) -> str:
        """Its URI as the client writes it."""
        ...

    @property
    def source(self) -> str:
        """Its present text."""
        ...

    @property
    def version(self) -> int | None:
        """Its present version."""
        ...


class Client(Protocol):
    """The editor."""

    @property
    def encoding(self) -> str:
        """The units of its columns: "utf-8", "utf-16" or "utf-32"."""
        ...

    @property
    def has_related(self) -> bool:
        """Whether it shows related information of diagnostics."""
        ...

    def documents(self) -> Iterable[Document]:
        """What it has open."""
        ...

    def notebooks(self) -> Iterable[OpenNotebook]:
        """The notebooks among it."""
        ...

    def publish(self, uri: str, version: int | None, diagnostics: list[lsp.Diagnostic]) -> None:
        """Show these diagnostics of a file and no others."""
        ...

    def show_progress(self, title: str, cancel: Callable[[], None]) -> AbstractAsyncContextManager[Report]:
        """Show that a job is running. `cancel` is called if the user no longer wants it."""
        ...

    def refresh_lenses(self) -> None:
        """Ask for the code lenses again."""
        ...
