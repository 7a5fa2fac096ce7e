"""Changes that can be taken back: two branches of an `if` that cannot be decided are both run, then joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .values import MORE, Names, Unknown, Value, join

Container = dict[str, Value] | dict[Value, Value] | list[Value] | Names


class OutOfBudget(Exception):
    """The evaluation was given up: it took too many steps."""


class Raised(Exception):
    """The evaluated program raises an exception there."""


@dataclass(slots=True)
class Budget:
    """What an evaluation may still take."""

    steps: int
    depth: int = 0

    def step(self, count: int = 1) -> None:
        """Count steps. Raises OutOfBudget when none are left."""
        self.steps -= count
        if self.steps < 0:
            raise OutOfBudget


@dataclass(frozen=True, slots=True)
class _Saved:
    container: Container
    content: Container


Layer = dict[int, _Saved]


class Heap:
    """Remembers what containers held before the branches that are being tried."""

    def __init__(self) -> None:
        self._layers: list[Layer] = []

    def write(self, container: Container) -> None:
        """To be called before a container is changed."""
        if not self._layers or id(container) in self._layers[-1]:
            return
        saved = _Saved(container, container.copy())
        for layer in reversed(self._layers):
            if id(container) in layer:
                break
            layer[id(container)] = saved

    @contextmanager
    def for_good(self) -> Iterator[None]:
        """What changes meanwhile is not taken back: a file or a class body that is first needed inside a branch."""
        layers, self._layers = self._layers, []
        try:
            yield
        finally:
            self._layers = layers

    def attempt(self, branch: Callable[[], object]) -> Layer:
        """Run a branch and take back what it changed; what each container that it changed held at its end."""
        layer: Layer = {}
        self._layers.append(layer)
        try:
            branch()
        finally:
            self._layers.pop()
            after = {key: _Saved(saved.container, saved.container.copy()) for key, saved in layer.items()}
            for saved in layer.values():
                _fill(saved.container, saved.content)
        return after

    def join(self, branches: list[Layer]) -> None:
        """Let every container hold what it may hold after any of the branches."""
        for key in {key: None for branch in branches for key in branch}:
            container = next(branch[key].container for branch in branches if key in branch)
            contents = [branch[key].content if key in branch else container.copy() for branch in branches]
            self.write(container)
            if isinstance(container, list):
                _fill(container, _joined_list([content for content in contents if isinstance(content, list)]))
            else:
                found = [content for content in contents if isinstance(content, dict)]
                _fill(container, _joined_dict(found, is_kept=isinstance(container, Names)))


def _fill(container: Container, content: Container) -> None:
    container.clear()
    if isinstance(container, list):
        container.extend(content)
    else:
        container.update(content)  # pyright: ignore[reportCallIssue, reportArgumentType]


def _joined_list(contents: list[list[Value]]) -> list[Value]:
    """Item by item; where lengths differ, what the shorter lack may or may not follow."""
    items = [[item for item in content if item is not MORE] for content in contents]
    longest = max(items, key=len)
    least = min(len(content) for content in items)
    joined = [join([content[at] for content in items]) for at in range(least)]
    is_open = len(longest) > least or any(MORE in content for content in contents)
    return [*joined, *longest[least:], MORE] if is_open else joined


_ABSENT = Unknown()


def _joined_dict(contents: Sequence[Mapping[Any, Value]], is_kept: bool) -> dict[Value, Value]:
    """Key by key. A key that only some have is kept as it is, or counts as not certain."""
    first, *others = contents
    keys = {key: None for content in contents for key in content}
    joined: dict[Value, Value] = {}
    for key in keys:
        value = first.get(key, _ABSENT)
        if value is _ABSENT or any(other.get(key, _ABSENT) is not value for other in others):
            found = [content[key] for content in contents if key in content]
            value = join(found)
            if len(found) < len(contents) and not is_kept and not isinstance(value, Unknown):
                value = Unknown("set in one branch only", (value,))
        joined[key] = value
    return joined
