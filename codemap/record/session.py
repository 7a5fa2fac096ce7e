"""The recorder in the recorded program: what the hooks tell becomes steps, and steps move the run on."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from . import hooks
from .boundaries import StepFinder
from .hooks import ModuleHooks
from .model import Definitions, ModelSurvey
from .options import RecordOptions
from .own import OwnFiles
from .phases import Phase
from .reports import ENDED_EARLY, Report
from .stages import Stages
from .writing import Writer

_WITHOUT_HOOKS = (Phase.PLAIN, Phase.LIGHT)


class Session:
    """One process's recording. All of it happens in hooks on the thread whose steps are recorded.

    What goes wrong in it ends the recording with a note, and never reaches the program.
    """

    def __init__(self, options: RecordOptions, folder: str, tell: Callable[[Report], None] | None = None) -> None:
        """`folder`: the working folder when the program began. `tell` hears how far it came, at every change."""
        files = OwnFiles(folder)
        self._options = options
        self._finder = StepFinder()
        self._hooks = ModuleHooks(self)
        self._definitions = Definitions()
        self._survey = ModelSurvey(self._definitions)
        self._stages = Stages(options, files, self._survey, Writer(options, folder, files))
        self._handles: list[Any] = []
        self._forget_profilers: Callable[[], None] | None = None
        self._anchor: weakref.ref[Any] | None = None
        self._thread = 0
        self._step_began_ns = 0
        self._steps_seen = 0
        self._is_over = False
        self._is_in_hook = False
        self._then: Callable[[], None] | None = None
        self._pid = os.getpid()
        self._tell = tell
        self._failure = ""
        self._has_ended = False
        self._is_parents = False

    def install(self) -> None:
        """Start listening. torch has been imported."""
        if hasattr(os, "register_at_fork"):
            session = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _forked(session()))
        self._hooks.put_on()
        self._definitions.put_on()
        self._handles = hooks.listen_to_optimizers(self)
        # An extra measurement may start a profiler too: in a hook.
        at_work = self._stages.at_work
        self._forget_profilers = hooks.listen_to_profilers(
            self, lambda: at_work.is_ours or self._is_over or self._is_in_hook
        )
        self._say_how_far()

    # What the hooks tell.

    def module_begins(self, module: Any, arguments: tuple[Any, ...], depth: int) -> None:
        """See `hooks.Listener`."""
        if not self._listens():
            return
        if depth == 0:
            self._guarded(lambda: self._outermost_begins(module))
        self._stages.module_begins(module, arguments, self._guarded)

    def module_ends(self, module: Any, keywords: dict[str, Any], output: Any) -> None:
        """See `hooks.Listener`."""
        if self._listens():
            self._stages.module_ends(module, keywords, output, self._guarded)

    def optimizer_stepped(self, optimizer: Any) -> None:
        """See `hooks.Listener`."""
        if self._listens():
            self._guarded(lambda: self._optimizer_stepped(optimizer))

    def profiler_starts(self) -> None:
        """See `hooks.Listener`."""
        if not self._is_over and os.getpid() == self._pid:
            self._guarded(self._step_aside)

    # The end.

    def finish(self) -> None:
        """The program ends, or leaves the recorded block: write what there is."""
        if self._is_parents or os.getpid() != self._pid:
            return
        if not self._is_over:
            self._guarded(self._end)
        self._has_ended = True
        self._say_how_far()

    def finish_and(self, then: Callable[[], None]) -> None:
        """In a signal handler, which may have come upon one of our own parts at work: let that end first."""
        if self._is_in_hook:
            self._then = then
        else:
            self.finish()
            then()

    def forked(self) -> None:
        """In a forked child: what has begun belongs to the parent; else this process may record itself."""
        self._pid = os.getpid()
        if self._thread:
            self._is_over = self._is_parents = True
            self._stages.leave_to_parent()

    def report(self) -> Report:
        """How far it came."""
        plan, recorded = self._stages.plan, self._stages.recorded
        return Report(
            pid=os.getpid(),
            saw_torch=True,
            trace=recorded.trace,
            rank=recorded.rank,
            steps_by=self._finder.by,
            steps_seen=self._steps_seen,
            warm_up_steps=plan.warm_up_steps,
            plain_step_us=tuple(plan.times_us[Phase.PLAIN]),
            light_step_us=tuple(plan.times_us[Phase.LIGHT]),
            full_step_us=tuple(plan.times_us[Phase.FULL]),
            stepped_aside=recorded.stepped_aside,
            failure=self._failure,
            has_ended=self._has_ended,
            notes=tuple(recorded.notes),
        )

    def _say_how_far(self) -> None:
        if self._tell is not None and not self._is_parents:
            self._tell(self.report())

    # Steps.

    def _listens(self) -> bool:
        """Whether the recording goes on, and on this thread; our own calls of modules do not count."""
        return not self._is_over and not self._is_in_hook and self._thread in (0, threading.get_ident())

    def _outermost_begins(self, module: Any) -> None:
        if self._stages.is_to_close:
            self._close_full()
            self._lighten()
        if self._stages.plan.block.phase not in _WITHOUT_HOOKS:
            self._survey.add_root(module)
        if not self._thread:
            self._begin()
        if self._finder.by == "optimizer":
            return
        has_parameters = next(module.parameters(), None) is not None
        has_gradients = any(parameter.grad is not None for parameter in module.parameters())
        if self._finder.module_called(id(module), has_parameters, has_gradients):
            self._anchor = weakref.ref(module)
            self._boundary()

    def _optimizer_stepped(self, optimizer: Any) -> None:
        was_by = self._finder.by
        is_boundary = self._finder.optimizer_stepped(id(optimizer))
        if was_by == "module" and not self._stages.recorded.trace:
            # What looked like inference was an evaluation before training, which is what is to be recorded.
            self._stages.start_over(max(self._options.warm_up, 1))
        if is_boundary:
            self._boundary()

    def _begin(self) -> None:
        """The first sign of a first step."""
        if hooks.is_loader_worker():
            self._is_over = True
            return
        self._thread = threading.get_ident()
        if self._stages.plan.block.phase is not Phase.WARM_UP:
            self._stages.enter(self._stages.plan.block, 0)
        self._step_began_ns = time.perf_counter_ns()

    def _boundary(self) -> None:
        """One step ends here, and the next begins."""
        now_ns, wall_ns = time.perf_counter_ns(), time.time_ns()
        if not self._thread:
            self._begin()
        if self._is_over:
            return
        self._steps_seen += 1
        self._stages.by = self._finder.by
        if self._stages.is_to_close:
            self._close_full()
        before, after = self._stages.end_step((now_ns - self._step_began_ns) / 1000, wall_ns, self._steps_seen)
        if before.phase is Phase.WARM_UP and after is not before:
            self._finder.settle()
        if after.phase is Phase.DONE:
            self._end()
        elif not self._stages.is_to_close:
            self._lighten()
        if after is not before or self._steps_seen == 1:
            self._say_how_far()
        self._step_began_ns = time.perf_counter_ns()

    def _close_full(self) -> None:
        self._stages.close_full()
        self._say_how_far()

    def _lighten(self) -> None:
        """Take the hooks off that every module call pays for, unless compiled graphs are guarded by them."""
        if self._stages.plan.block.phase not in _WITHOUT_HOOKS or not self._hooks.is_on or hooks.has_compiled():
            return
        self._hooks.take_off()
        module = self._anchor() if self._anchor is not None else None
        if self._finder.by == "module" and module is not None:
            self._handles.append(module.register_forward_pre_hook(lambda *_: self._anchor_called()))

    def _anchor_called(self) -> None:
        if self._listens():
            self._guarded(self._boundary)

    # Endings.

    def _end(self) -> None:
        """Write what there is and listen no more."""
        self._stages.by = self._finder.by
        self._stages.end()
        self._remove()

    def _step_aside(self) -> None:
        self._stages.drop()
        self._stages.recorded.stepped_aside = True
        self._stages.recorded.note("the program started a profiler of its own; recording ended there")
        self._stages.write_beside()
        self._remove()

    def _remove(self) -> None:
        self._is_over = True
        if not hooks.has_compiled():
            self._hooks.take_off()
        self._definitions.take_off()
        if self._forget_profilers is not None:
            self._forget_profilers()
        self._survey.let_go()
        for handle in self._handles:
            handle.remove()

    def _guarded(self, call: Callable[[], None]) -> None:
        """Run one of our own parts; its failure ends the recording, not the program."""
        self._is_in_hook = True
        try:
            call()
        except Exception as error:  # noqa: BLE001  whatever it is, the program must run on as if alone
            self._failure = _said(error)
            self._stages.recorded.note(f"{ENDED_EARLY}{self._failure}")
            self._abandon()
        finally:
            self._is_in_hook = False
        if self._then is not None:
            then, self._then = self._then, None
            self.finish_and(then)

    def _abandon(self) -> None:
        try:
            self._stages.drop()
            self._remove()
        except Exception as error:  # noqa: BLE001  as above
            self._is_over = True
            self._stages.recorded.note(f"and could not be cleared away: {type(error).__name__}: {error}")
            sys.settrace(None)


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the trace'}: {error.strerror}"
    return f"{type(error).__name__}: {error}"


def _forked(session: Session | None) -> None:
    if session is not None:
        session.forked()
