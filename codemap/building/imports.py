"""Imported names, found among the files of the workspace."""

from __future__ import annotations

from collections.abc import Iterable

_LIBRARIES = frozenset(("torch", "numpy", "math", "os", "sys", "typing", "functools", "collections", "itertools"))
"""Never looked for in the workspace."""


class Imports:
    """Dotted module names by file. A name may count from any folder, as `sys.path` may start anywhere; the nearest
    file fits."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_last: dict[str, list[str]] = {}
        for path in paths:
            module = path.removesuffix(".py").removesuffix("/__init__")
            self._by_last.setdefault(module.rpartition("/")[2], []).append(path)
        self._found: dict[tuple[str, str], str] = {}

    def absolute(self, dotted: str, importer: str) -> str:
        """The file of `dotted` as `importer` (a path) sees it; "" if the workspace has none."""
        if not dotted or dotted.partition(".")[0] in _LIBRARIES:
            return ""
        key = dotted, importer.rpartition("/")[0]
        if key not in self._found:
            self._found[key] = self._search(dotted, importer)
        return self._found[key]

    def relative(self, dotted: str, level: int, importer: str) -> str:
        """The file that `level` dots and `dotted` name; "" if the workspace has none."""
        parts = importer.split("/")[:-level]
        if level > importer.count("/") + 1:
            return ""
        module = "/".join([*parts, *(dotted.split(".") if dotted else [])])
        candidates = self._by_last.get(module.rpartition("/")[2], ())
        return next((path for path in candidates if path in (f"{module}.py", f"{module}/__init__.py")), "")

    def _search(self, dotted: str, importer: str) -> str:
        tail = dotted.replace(".", "/")
        fitting = [
            path
            for path in self._by_last.get(tail.rpartition("/")[2], ())
            if f"/{path.removesuffix('.py').removesuffix('/__init__')}".endswith(f"/{tail}")
        ]
        return min(fitting, key=lambda path: (-_common(path, importer), len(path), path), default="")


def _common(path: str, other: str) -> int:
    """How many folders two paths share from the start."""
    count = 0
    for one, two in zip(path.split("/")[:-1], other.split("/")[:-1], strict=False):
        if one != two:
            break
        count += 1
    return count
