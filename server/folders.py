"""The workspace folders that a client has open, and which file belongs to which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pygls import uris

from .memory import Memory
from .settings import Settings
from .state import FolderState

if TYPE_CHECKING:
    from .watcher import Watcher


@dataclass(frozen=True, slots=True)
class Published:
    """The diagnostics of ours that a document holds."""

    path: str | None
    """The file's path in its folder; None for a trace."""
    version: int | None
    diagnostics: tuple[lsp.Diagnostic, ...]


class Folder:
    """One workspace folder with its settings and findings."""

    def __init__(self, uri: str, root: Path) -> None:
        self.uri = uri
        self.root = root
        self.real_root = root.resolve()
        self.settings = Settings()
        self.state = FolderState()
        self.watcher: Watcher | None = None
        self.memory: Memory | None = None
        self.published: dict[str, Published] = {}
        """What the client shows, by URI."""
        self.uris: dict[str, str] = {}
        """How the client writes the URI of each file that it has opened, by path."""
        self._made_uris: dict[str, str] = {}

    def uri_of(self, path: str) -> str:
        """The URI of a file of this folder, as the client writes it."""
        known = self.uris.get(path) or self._made_uris.get(path)
        if known is None:
            known = self._made_uris[path] = (self.root / path).as_uri()
        return known

    def relative(self, file: Path) -> str | None:
        """A file's path relative to the root, with "/"; None if it is not inside. Links are followed."""
        if file.is_relative_to(self.root):
            return file.relative_to(self.root).as_posix()
        real = file.resolve()
        return real.relative_to(self.real_root).as_posix() if real.is_relative_to(self.real_root) else None


class Folders:
    """All open folders."""

    def __init__(self) -> None:
        self._by_uri: dict[str, Folder] = {}
        self._located: dict[str, tuple[Folder, str] | None] = {}

    def __iter__(self) -> Iterator[Folder]:
        """Over the folders."""
        return iter(tuple(self._by_uri.values()))

    def add(self, uri: str) -> Folder | None:
        """Open a folder. None if it is open already, or is not a folder on this machine."""
        path = uris.to_fs_path(uri)
        if path is None or uri in self._by_uri or not Path(path).is_dir():
            return None
        self._located.clear()
        self._by_uri[uri] = Folder(uri, Path(path))
        return self._by_uri[uri]

    def remove(self, uri: str) -> Folder | None:
        """Close a folder."""
        self._located.clear()
        return self._by_uri.pop(uri, None)

    def locate(self, uri: str) -> tuple[Folder, str] | None:
        """The innermost folder that holds a document, and the document's path in it. None for what is not a file."""
        if uri not in self._located:
            path = uris.to_fs_path(uri) if uri.startswith("file:") else None
            self._located[uri] = None if path is None else self.locate_file(Path(path))
        return self._located[uri]

    def locate_file(self, file: Path) -> tuple[Folder, str] | None:
        """The innermost folder that holds a file, and the file's path in it."""
        found = [(folder, path) for folder in self if (path := folder.relative(file)) is not None]
        return max(found, key=lambda item: len(item[0].root.parts), default=None)


def initial_uris(folder_uris: Iterable[str], root_uri: str | None, root_path: str | None) -> list[str]:
    """The folders that an `initialize` request opens: clients without workspace folders give one root."""
    given = list(folder_uris)
    if given:
        return given
    if root_uri:
        return [root_uri]
    return [Path(root_path).as_uri()] if root_path else []
