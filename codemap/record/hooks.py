"""Where the recorder listens: global hooks of torch on modules and optimizers, and on profilers that others start.

Only the recorded process calls this; torch is there by then. No hook may raise into the program or be traced by
torch.compile: each leaves at once while a graph is being traced.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol

_COMPILE_WARNING = r"Using `torch\.compile\(module\)` when there are global hooks"


class Listener(Protocol):
    """Who is told."""

    def module_begins(self, module: Any, arguments: tuple[Any, ...], depth: int) -> None:
        """A module is about to run its `forward`; `depth` is 0 for one that no other module called."""
        ...

    def module_ends(self, module: Any, keywords: dict[str, Any], output: Any) -> None:
        """A module has run; `output` is None if it raised."""
        ...

    def optimizer_stepped(self, optimizer: Any) -> None:
        """An optimizer has stepped."""
        ...

    def profiler_starts(self) -> None:
        """The program starts a profiler of its own."""
        ...


class ModuleHooks:
    """The hooks on every call of every module, put on and taken off."""

    def __init__(self, listener: Listener) -> None:
        """`listener` is told of every call."""
        self._listener = listener
        self._handles: list[Any] = []
        self._depth = threading.local()

    @property
    def is_on(self) -> bool:
        """Whether calls are listened to."""
        return bool(self._handles)

    def put_on(self) -> None:
        """Listen from now on."""
        import torch
        from torch.nn.modules import module as modules

        is_compiling = torch.compiler.is_compiling
        depth, listener = self._depth, self._listener

        def begins(module: Any, arguments: Any) -> None:
            if is_compiling():
                return
            level = getattr(depth, "level", 0)
            depth.level = level + 1
            listener.module_begins(module, arguments, level)

        def ends(module: Any, arguments: Any, keywords: Any, output: Any) -> None:
            if is_compiling():
                return
            depth.level = max(getattr(depth, "level", 1) - 1, 0)
            listener.module_ends(module, keywords, output)

        def ends_without_keywords(module: Any, arguments: Any, output: Any) -> None:
            ends(module, arguments, {}, output)

        known = inspect.signature(modules.register_module_forward_hook).parameters
        # The hook also runs when `forward` raises, or the depth would be wrong from then on.
        always: dict[str, Any] = {"always_call": True} if "always_call" in known else {}
        if "with_kwargs" in known:
            after = modules.register_module_forward_hook(ends, with_kwargs=True, **always)
        else:
            after = modules.register_module_forward_hook(ends_without_keywords, **always)
        warnings.filterwarnings("ignore", message=_COMPILE_WARNING)
        self._handles = [modules.register_module_forward_pre_hook(begins), after]

    def take_off(self) -> None:
        """Listen no more."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._depth.level = 0


def listen_to_optimizers(listener: Listener) -> list[Any]:
    """Tell of every optimizer's steps, each once, however many `step` of base classes it runs; handles to remove."""
    optimizers = importlib.import_module("torch.optim.optimizer")
    depth = threading.local()

    def begins(optimizer: Any, *_: Any) -> None:
        depth.__dict__[str(id(optimizer))] = depth.__dict__.get(str(id(optimizer)), 0) + 1

    def ends(optimizer: Any, *_: Any) -> None:
        left = depth.__dict__.pop(str(id(optimizer)), 1) - 1
        if left > 0:
            depth.__dict__[str(id(optimizer))] = left
        else:
            listener.optimizer_stepped(optimizer)

    return [
        optimizers.register_optimizer_step_pre_hook(begins),
        optimizers.register_optimizer_step_post_hook(ends),
    ]


def listen_to_profilers(listener: Listener, is_ours: Callable[[], bool]) -> Callable[[], None]:
    """Tell when the program starts a profiler, before it does; the answer ends that.

    `is_ours` says that the recorder is starting one.
    """
    from torch.autograd import profiler as low
    from torch.profiler import profiler as high

    originals: list[tuple[type, str, Any, Any]] = []

    def tell_of(owner: type, name: str) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def started(self: Any, *arguments: Any, **keywords: Any) -> Any:
            if not is_ours():
                listener.profiler_starts()
            return original(self, *arguments, **keywords)

        setattr(owner, name, started)
        originals.append((owner, name, original, started))

    def undo() -> None:
        for owner, name, original, started in originals:
            if getattr(owner, name) is started:
                setattr(owner, name, original)

    # `start` comes before a schedule's waiting is over, the others when no schedule was given.
    tell_of(high.profile, "start")
    tell_of(high._KinetoProfile, "prepare_trace")
    tell_of(low.profile, "__enter__")
    return undo


def has_compiled() -> bool:
    """Whether torch.compile has compiled anything: its graphs are guarded by which hooks there are."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", None)
    return bool(counters and counters.get("stats"))


def is_loader_worker() -> bool:
    """Whether this process is a worker of a DataLoader."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    return getattr(worker, "_worker_info", None) is not None


def tensors_in(value: Any, depth: int = 3) -> Iterator[Any]:
    """The tensors of a module's arguments or results, also those within lists, tuples and dicts."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, depth - 1)
