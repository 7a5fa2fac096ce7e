"""The model as it runs: every module's path, definition, parameters, shapes, and whose outputs it was given."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from ...analyzer.trace.recording import RecordedModule, RecordedParameter
from .hooks import tensors_in
from .lines import FileTable
from .own import OwnFiles
from .stepping import release_locals

_WRAPPERS = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "OptimizedModule": "_orig_mod",
}
_WRAPPED_PARTS = frozenset({"_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod"})
_MOST_MODULES = 20_000
_MOST_FRAMES = 12
_HERE = str(Path(__file__).parent)


class Definitions:
    """Which line put each module into its parent, noted as the model is built."""

    def __init__(self) -> None:
        """Nothing is built yet."""
        self._of: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()
        self._handle: Any = None

    def put_on(self) -> None:
        """Note every module from now on."""
        import torch
        from torch.nn.modules import module as modules

        library = str(Path(torch.__file__).parent)
        register = getattr(modules, "register_module_module_registration_hook", None)
        if register is None:
            return

        def registered(parent: Any, name: str, module: Any) -> None:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.startswith((library, _HERE)):
                frame = frame.f_back
            if frame is None or module is None:
                return
            try:
                self._of[module] = (frame.f_code.co_filename, frame.f_lineno)
            except TypeError:
                return  # a class that cannot be hashed has no line

        self._handle = register(registered)

    def take_off(self) -> None:
        """Note no more; what is known stays."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def of(self, module: Any) -> tuple[str, int]:
        """File and line; ("", 0) if unknown."""
        try:
            return self._of.get(module, ("", 0))
        except TypeError:
            return "", 0


@dataclass(slots=True)
class _Observed:
    inputs: tuple[tuple[int, ...], ...] = ()
    outputs: tuple[tuple[int, ...], ...] = ()
    calls: int = 0
    feeds: dict[str, None] = field(default_factory=dict)


class ModelSurvey:
    """The modules that ran, by path, and what one step showed of them."""

    def __init__(self, definitions: Definitions) -> None:
        """`definitions`: the lines known so far."""
        self._definitions = definitions
        self.roots: dict[str, Any] = {}
        """By name; the name is part of the paths only where there are several models."""
        self._of: dict[int, tuple[Any, str]] = {}
        self._observed: dict[str, _Observed] = {}
        self._makers: dict[int, tuple[weakref.ref[Any], dict[str, None]]] = {}
        self._steps = 0
        self.autocast = ""

    def add_root(self, module: Any) -> None:
        """Take in a model by its outermost module, once."""
        bare = unwrapped(module)
        if not any(root is bare for root in self.roots.values()):
            name = _variable_of(bare) or _variable_of(module) or type(bare).__name__
            while name in self.roots:
                name += "_"
            self.roots[name] = bare
            self._of = {}

    @property
    def paths(self) -> Mapping[int, str]:
        """`id(module)` -> path."""
        return {key: path for key, (_, path) in self._modules().items()}

    def tag_of(self, module: Any, files: OwnFiles) -> str:
        """What a call of the module is called in the trace, behind the tags' first word. "" for an unknown module."""
        known = self._modules().get(id(module))
        if known is None:
            return ""
        file, line = self._definitions.of(module) if known[1] else ("", 0)
        if not line:
            file, line = _forward_of(module)
        place = f" {files.shown(file)}:{line}" if line else ""
        return f"{known[1] or '.'}{place}"

    def begins(self, module: Any, arguments: Any) -> None:
        """A call in the step that is looked at."""
        path = self._path(module)
        if path is None:
            return
        seen = self._observed.setdefault(path, _Observed())
        seen.calls += 1
        seen.inputs = ()
        self._take_in(seen, path, arguments)

    def ends(self, module: Any, keywords: Any, output: Any) -> None:
        """The end of a call."""
        path = self._path(module)
        if path is None:
            return
        seen = self._observed.setdefault(path, _Observed())
        self._take_in(seen, path, keywords)
        tensors = list(tensors_in(output))
        seen.outputs = tuple(tuple(tensor.shape) for tensor in tensors)
        for tensor in tensors:
            made = self._makers.get(id(tensor))
            makers = made[1] if made is not None and made[0]() is tensor else {}
            makers[path] = None
            self._makers[id(tensor)] = (weakref.ref(tensor), makers)
        self.autocast = self.autocast or autocast_dtype()

    def end_step(self) -> None:
        """One of the steps that are looked at is over."""
        self._makers = {}
        self._steps += 1

    def let_go(self) -> None:
        """Keep no module alive any more."""
        self.roots, self._of, self._makers = {}, {}, {}

    def recorded(self, table: FileTable) -> Iterator[RecordedModule]:
        """Every module, outer ones before inner ones."""
        for module, path in list(self._modules().values())[:_MOST_MODULES]:
            seen = self._observed.get(path, _Observed())
            file, line = _forward_of(module)
            defined, defined_line = self._definitions.of(module)
            yield RecordedModule(
                path=path,
                class_name=type(module).__name__,
                origin=f"{type(module).__module__}.{type(module).__qualname__}",
                file=table.number(file) if line else -1,
                line=line,
                defined_file=table.number(defined) if defined_line else -1,
                defined_line=defined_line,
                parameters=tuple(_parameters(module)),
                arguments=_arguments(module),
                inputs=seen.inputs,
                outputs=seen.outputs,
                calls_per_step=seen.calls / max(self._steps, 1),
                feeds=tuple(seen.feeds),
            )

    def _path(self, module: Any) -> str | None:
        known = self._modules().get(id(module))
        return known[1] if known is not None else None

    def _modules(self) -> dict[int, tuple[Any, str]]:
        if not self._of:
            models = [name for name, root in self.roots.items() if next(root.parameters(), None) is not None]
            for name, root in self.roots.items():
                first = () if models == [name] else (name,)
                for path, module in root.named_modules():
                    parts = [part for part in path.split(".") if part and part not in _WRAPPED_PARTS]
                    self._of.setdefault(id(module), (module, ".".join([*first, *parts])))
        return self._of

    def _take_in(self, seen: _Observed, path: str, given: Any) -> None:
        tensors = list(tensors_in(given))
        seen.inputs += tuple(tuple(tensor.shape) for tensor in tensors)
        for tensor in tensors:
            made = self._makers.get(id(tensor))
            if made is None or made[0]() is not tensor:
                continue
            for maker in made[1]:
                if not _is_within(path, maker) and not _is_within(maker, path):
                    self._observed.setdefault(maker, _Observed()).feeds[path] = None


def unwrapped(module: Any) -> Any:
    """The model inside DDP, FSDP or a compiled module."""
    while (name := _WRAPPERS.get(type(module).__name__)) and (inner := getattr(module, name, None)) is not None:
        module = inner
    return module


def autocast_dtype() -> str:
    """The dtype that autocast is on with; "" if it is off."""
    import torch

    if hasattr(torch, "get_autocast_dtype"):
        kinds = (kind for kind in ("cuda", "cpu") if torch.is_autocast_enabled(kind))
        return next((str(torch.get_autocast_dtype(kind)).removeprefix("torch.") for kind in kinds), "")
    if torch.is_autocast_enabled():  # torch before 2.4
        return str(torch.get_autocast_gpu_dtype()).removeprefix("torch.")
    return str(torch.get_autocast_cpu_dtype()).removeprefix("torch.") if torch.is_autocast_cpu_enabled() else ""


def _variable_of(module: Any) -> str:
    """What the innermost function that knows the module calls it: `model`, or `net` of `self.net`."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return ""
        if not frame.f_code.co_filename.startswith(_HERE) and "_call_impl" not in frame.f_code.co_name:
            scopes = [frame.f_locals, getattr(frame.f_locals.get("self"), "_modules", None) or {}, frame.f_globals]
            names = (n for scope in scopes for n, value in list(scope.items()) if value is module and n != "self")
            name = next(names, "")
            release_locals(frame)
            if name:
                return name
        frame = frame.f_back
    return ""


def _forward_of(module: Any) -> tuple[str, int]:
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)


def _parameters(module: Any) -> Iterator[RecordedParameter]:
    for is_buffer, named in ((False, module.named_parameters), (True, module.named_buffers)):
        for name, tensor in named(recurse=False):
            try:
                shape = tuple(tensor.shape)
            except RuntimeError:  # a lazy module has none before its first call
                shape = ()
            dtype = str(tensor.dtype).removeprefix("torch.")
            yield RecordedParameter(name, shape, dtype, tensor.requires_grad and not is_buffer, is_buffer)


def _arguments(module: Any) -> dict[str, str]:
    """`extra_repr` by name; what it gives without a name is called as the constructor calls it, in order."""
    try:
        text = str(module.extra_repr())
        names = [name for name in inspect.signature(type(module).__init__).parameters if name != "self"]
    except Exception:  # noqa: BLE001  a class of the program may raise anything here
        return {}
    found: dict[str, str] = {}
    for i, part in enumerate(_parted(text)):
        name, equals, value = part.partition("=")
        if equals and name.strip().isidentifier():
            found[name.strip()] = value.strip()
        elif i < len(names) and part:
            found[names[i]] = part
    return found


def _parted(text: str) -> list[str]:
    """The parts between commas that stand in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _is_within(path: str, outer: str) -> bool:
    return path == outer or not outer or path.startswith(f"{outer}.")
