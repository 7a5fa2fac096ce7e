"""The recorder in the recorded program: told what happens, it starts and stops what each step is used for."""

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
from .extras import ExtraContext
from .hooks import ModuleHooks
from .measuring import Measuring
from .model import Definitions, ModelSurvey
from .options import RecordOptions
from .own import OwnFiles
from .phases import Block, Phase, Plan, blocks
from .reports import Report
from .stepping import LineTracer
from .tags import Tags
from .windows import ProfilerAtWork, Totals, Window
from .writing import Recorded, Writer

_WITH_HOOKS = (Phase.WARM_UP, Phase.EXTRA, Phase.SURVEY, Phase.FULL)


class Session:
    """One process's recording. All of it happens in hooks on the thread whose steps are recorded.

    What goes wrong in it ends the recording with a note, and never reaches the program.
    """

    def __init__(self, options: RecordOptions, folder: str) -> None:
        """`folder`: the working folder when the program began."""
        self._options = options
        self._files = OwnFiles(folder)
        self._writer = Writer(options, folder, self._files)
        self._at_work = ProfilerAtWork()
        self._finder = StepFinder()
        self._hooks = ModuleHooks(self)
        self._definitions = Definitions()
        self._survey = ModelSurvey(self._definitions)
        self._measuring = Measuring(options)
        self._plan = self._new_plan(options.warm_up)
        self._tags = Tags(self._survey, self._files)
        self._surveyed_in = Phase.SURVEY if options.warm_up else Phase.FULL
        self._handles: list[Any] = []
        self._forget_profilers: Callable[[], None] = lambda: None
        self._window: Window | None = None
        self._tracer: LineTracer | None = None
        self._totals = Totals()
        self._recorded = Recorded()
        self._anchor: weakref.ref[Any] | None = None
        self._anchor_handle: Any = None
        self._thread = 0
        self._step_began_ns = 0
        self._stop_at_next_call = False
        self._steps_seen = 0
        self._is_over = False
        self._is_in_hook = False
        self._pid = os.getpid()

    def install(self) -> None:
        """Start listening. torch has been imported."""
        self._hooks.put_on()
        self._definitions.put_on()
        self._handles = hooks.listen_to_optimizers(self)
        hooks.listen_to_profilers(self, lambda: self._at_work.is_ours or self._is_over or self._is_in_hook)

    # What the hooks tell.

    def module_begins(self, module: Any, arguments: tuple[Any, ...], depth: int) -> None:
        """See `hooks.Listener`."""
        if self._is_over or self._is_in_hook or not self._is_here():
            return
        if depth == 0:
            self._guarded(lambda: self._outermost_begins(module))
        phase = self._plan.block.phase
        if phase is self._surveyed_in:
            self._guarded(lambda: self._survey.begins(module, arguments))
        if phase is Phase.FULL:
            self._tags.open(module)

    def module_ends(self, module: Any, keywords: dict[str, Any], output: Any, depth: int) -> None:
        """See `hooks.Listener`."""
        if self._is_over or self._is_in_hook or not self._is_here():
            return
        if self._tags.are_open:
            self._tags.close(module)
        if self._plan.block.phase is self._surveyed_in:
            self._guarded(lambda: self._survey.ends(module, keywords, output))

    def optimizer_stepped(self, optimizer: Any) -> None:
        """See `hooks.Listener`."""
        if not self._is_over and not self._is_in_hook and self._is_here():
            self._guarded(lambda: self._optimizer_stepped(optimizer))

    def profiler_starts(self) -> None:
        """See `hooks.Listener`."""
        if not self._is_over and os.getpid() == self._pid:
            self._guarded(self._step_aside)

    # The end.

    def finish(self) -> None:
        """The program ends, or leaves the recorded block: write what there is."""
        if not self._is_over and os.getpid() == self._pid:
            self._guarded(self._end)

    def forked(self) -> None:
        """In a forked child: what has begun belongs to the parent; else this process may record itself."""
        if self._thread:
            self._is_over = True
        else:
            self._pid = os.getpid()

    def report(self) -> Report:
        """How far it came."""
        times = self._plan.times_us
        return Report(
            pid=os.getpid(),
            saw_torch=True,
            is_worker=hooks.is_loader_worker(),
            trace=self._recorded.trace,
            rank=self._recorded.rank,
            steps_by=self._finder.by,
            steps_seen=self._steps_seen,
            warm_up_steps=self._plan.warm_up_steps,
            plain_step_us=tuple(times[Phase.PLAIN]),
            light_step_us=tuple(times[Phase.LIGHT]),
            full_step_us=tuple(times[Phase.FULL]),
            stepped_aside=self._recorded.stepped_aside,
            notes=tuple(self._recorded.notes),
        )

    # Steps.

    def _is_here(self) -> bool:
        """Whether this is the thread whose steps are recorded, in the process that they are recorded in."""
        return self._thread in (0, threading.get_ident())

    def _outermost_begins(self, module: Any) -> None:
        if self._stop_at_next_call:
            self._close_full()
        if self._plan.block.phase in _WITH_HOOKS:
            self._survey.add_root(module)
        if not self._step_began_ns:
            self._begin()
        parameter = next(module.parameters(), None)
        has_gradients = parameter is not None and any(p.grad is not None for p in module.parameters())
        if self._finder.module_called(id(module), parameter is not None, has_gradients):
            self._anchor = weakref.ref(module)
            self._boundary()

    def _optimizer_stepped(self, optimizer: Any) -> None:
        was_by = self._finder.by
        is_boundary = self._finder.optimizer_stepped(id(optimizer))
        if was_by == "module":
            self._start_over()
        if is_boundary:
            self._boundary()

    def _begin(self) -> None:
        """The first sign of a first step."""
        if hooks.is_loader_worker():
            self._is_over = True
            return
        self._thread = threading.get_ident()
        if self._plan.block.phase is not Phase.WARM_UP:
            self._enter(self._plan.block)
        self._step_began_ns = time.perf_counter_ns()

    def _start_over(self) -> None:
        """What looked like inference was an evaluation before training, which is what is to be recorded."""
        if self._recorded.trace:
            return
        self._drop_window()
        self._plan = self._new_plan(max(self._options.warm_up, 1))
        self._surveyed_in = Phase.SURVEY
        self._recorded = Recorded()
        if not self._hooks.is_on:
            self._hooks.put_on()

    def _new_plan(self, warm_up: int) -> Plan:
        asked = self._options
        return Plan(warm_up, blocks(warm_up, asked.full, asked.iterations, self._measuring.steps))

    def _boundary(self) -> None:
        """One step ends here, and the next begins."""
        now_ns, wall_ns = time.perf_counter_ns(), time.time_ns()
        if not self._thread:
            self._begin()
        self._steps_seen += 1
        before = self._plan.block
        if before.phase is self._surveyed_in:
            self._survey.end_step()
        if before.phase is Phase.FULL and not self._recorded.is_full_over:
            self._recorded.moments_ns.append(wall_ns)
            self._measuring.on_full_step(len(self._recorded.moments_ns) - 2)
        after = self._plan.advance((now_ns - self._step_began_ns) / 1000)
        if after is not before:
            if before.phase is Phase.WARM_UP:
                self._finder.settle()
            self._leave(before)
            self._enter(after)
        self._step_began_ns = time.perf_counter_ns()

    # Phases.

    def _leave(self, block: Block) -> None:
        if block.phase is Phase.EXTRA:
            self._measuring.stop(block.extra)
        elif block.phase is Phase.FULL:
            self._recorded.is_full_over = True
            # The range of the optimizer's step is still open around this: it is closed before the next call.
            self._stop_at_next_call = self._finder.by == "optimizer" and self._hooks.is_on
            if not self._stop_at_next_call:
                self._close_full()
        elif block.phase is Phase.LIGHT and self._window is not None:
            self._window.stop()
            self._totals.add(self._window.results)
            self._recorded.light_steps += block.steps
            self._window = None

    def _enter(self, block: Block) -> None:
        if block.phase is Phase.EXTRA:
            self._measuring.start(block.extra, self._context())
        elif block.phase is Phase.SURVEY:
            self._window = Window(True, self._at_work)
            self._window.prepare()
        elif block.phase is Phase.FULL:
            self._open_full()
        elif block.phase is Phase.LIGHT:
            self._window = Window(False, self._at_work)
            self._window.start()
        elif block.phase is Phase.DONE:
            self._end()
        if block.phase in (Phase.PLAIN, Phase.LIGHT) and not self._stop_at_next_call:
            self._lighten()

    def _open_full(self) -> None:
        if self._window is None:
            self._window = Window(True, self._at_work)
            self._window.prepare()
        self._tags.make_ready()
        self._measuring.begin_full(self._context())
        if hooks.has_compiled():
            self._recorded.note("torch.compile is in use: operators without a Python event have no line")
        else:
            self._tracer = LineTracer(self._files)
            self._recorded.note(self._tracer.start())
        self._window.start()
        self._recorded.first_step = self._steps_seen
        self._recorded.moments_ns.append(time.time_ns())

    def _close_full(self) -> None:
        """Stop the full window and write the trace."""
        self._stop_at_next_call = False
        window, self._window = self._window, None
        tracer, self._tracer = self._tracer, None
        self._measuring.end()
        if window is None:
            return
        if tracer is not None:
            tracer.stop()
        self._tags.close_all()
        window.stop()
        self._writer.write_trace(window, tracer.moves if tracer else [], self._recorded, self._finder.by)
        self._write_beside()
        if self._plan.block.phase in (Phase.PLAIN, Phase.LIGHT):
            self._lighten()

    def _write_beside(self) -> None:
        self._writer.write_beside(
            self._recorded, self._plan, self._finder.by, self._survey, self._totals, self._measuring
        )

    def _lighten(self) -> None:
        """Take the hooks off that every module call pays for, unless compiled graphs are guarded by them."""
        if not self._hooks.is_on or hooks.has_compiled():
            return
        self._hooks.take_off()
        module = self._anchor() if self._anchor is not None else None
        if self._finder.by == "module" and module is not None:
            self._anchor_handle = module.register_forward_pre_hook(lambda *_: self._anchor_called())

    def _anchor_called(self) -> None:
        if not self._is_over and not self._is_in_hook and self._is_here():
            self._guarded(self._boundary)

    def _context(self) -> ExtraContext:
        return ExtraContext(
            self._options, dict(self._survey.roots), dict(self._survey.paths), self._finder.by == "optimizer"
        )

    # Endings.

    def _end(self) -> None:
        """Write what there is and listen no more."""
        block = self._plan.block
        if block.phase is Phase.EXTRA:
            self._measuring.stop(block.extra)
        if self._window is not None and block.phase is Phase.LIGHT:
            self._window.stop()
            self._totals.add(self._window.results)
            self._recorded.light_steps += self._plan.done_in_block
            self._window = None
        elif self._window is not None and self._window.is_running:
            self._recorded.is_full_over = True
            self._close_full()
        self._drop_window()
        if self._recorded.trace:
            self._write_beside()
        self._remove()

    def _step_aside(self) -> None:
        self._drop_window()
        self._recorded.stepped_aside = True
        self._recorded.note("the program started a profiler of its own; recording ended there")
        if self._recorded.trace:
            self._write_beside()
        self._remove()

    def _drop_window(self) -> None:
        """Stop whatever runs, without writing it."""
        if self._tracer is not None:
            self._tracer.stop()
        self._tags.close_all()
        if self._window is not None:
            self._window.stop()
        self._window = self._tracer = None
        self._stop_at_next_call = False

    def _remove(self) -> None:
        self._is_over = True
        if not hooks.has_compiled():
            self._hooks.take_off()
        self._definitions.take_off()
        self._forget_profilers()
        self._survey.let_go()
        for handle in (*self._handles, *([self._anchor_handle] if self._anchor_handle else [])):
            handle.remove()

    def _guarded(self, call: Callable[[], None]) -> None:
        """Run one of our own parts; its failure ends the recording, not the program."""
        self._is_in_hook = True
        try:
            call()
        except Exception as error:  # noqa: BLE001  whatever it is, the program must run on as if alone
            self._recorded.note(f"recording ended early: {type(error).__name__}: {error}")
            self._is_over = True
            self._abandon()
        finally:
            self._is_in_hook = False

    def _abandon(self) -> None:
        try:
            self._drop_window()
            self._remove()
        except Exception as error:  # noqa: BLE001  as above
            self._recorded.note(f"and could not be cleared away: {type(error).__name__}: {error}")
            sys.settrace(None)
