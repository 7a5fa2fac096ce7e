"""What runs in each block of steps: extra measurements, the survey of the model, the profilers; and what is written."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import hooks
from .extras import ExtraContext
from .forks import stop_watching
from .measuring import Measuring
from .model import ModelSurvey
from .options import RecordOptions
from .own import OwnFiles
from .phases import Block, Phase, Plan, blocks
from .stepping import LineTracer
from .tags import Tags
from .windows import ProfilerAtWork, Totals, Window
from .writing import Recorded, Writer


class Stages:
    """Enters and leaves the blocks of a plan. All of it happens between two steps, on their thread."""

    def __init__(self, options: RecordOptions, files: OwnFiles, survey: ModelSurvey, writer: Writer) -> None:
        """Nothing runs yet."""
        self._options = options
        self._files = files
        self._survey = survey
        self._writer = writer
        self._measuring = Measuring(options)
        self._window: Window | None = None
        self._tracer: LineTracer | None = None
        self._totals = Totals()
        self._tags = Tags(survey, files)
        self.at_work = ProfilerAtWork()
        self.by = ""
        """What parts the steps."""
        self.start_over(options.warm_up)

    def start_over(self, warm_up: int) -> None:
        """Begin again with warm-up, with nothing recorded."""
        self.drop()
        asked = self._options
        self.plan = Plan(warm_up, blocks(warm_up, asked.full, asked.iterations, self._measuring.steps))
        self.recorded = Recorded()
        self.surveyed_in = Phase.SURVEY if warm_up else Phase.FULL
        self.is_to_close = False
        """A full window is over, but is only closed at the next call of a module."""

    # Within steps.

    def module_begins(
        self, module: Any, arguments: tuple[Any, ...], guarded: Callable[[Callable[[], None]], None]
    ) -> None:
        """A module's call, in a phase that looks at them; `guarded` runs what may fail."""
        phase = self.plan.block.phase
        if phase is self.surveyed_in:
            guarded(lambda: self._survey.begins(module, arguments))
        if phase is Phase.FULL:
            self._tags.open(module)

    def module_ends(
        self, module: Any, keywords: dict[str, Any], output: Any, guarded: Callable[[Callable[[], None]], None]
    ) -> None:
        """Its end."""
        if self._tags.are_open:
            self._tags.close(module)
        if self.plan.block.phase is self.surveyed_in:
            guarded(lambda: self._survey.ends(module, keywords, output))

    # Between steps.

    def end_step(self, step_us: float, wall_ns: int, steps_seen: int) -> tuple[Block, Block]:
        """A step is over; the blocks that it and the next one belong to."""
        before = self.plan.block
        if before.phase is self.surveyed_in:
            self._survey.end_step()
        if before.phase is Phase.FULL:
            self.recorded.moments_ns.append(wall_ns)
            if len(self.recorded.moments_ns) > 1:
                self._measuring.on_full_step(len(self.recorded.moments_ns) - 2)
        after = self.plan.advance(step_us)
        if after is not before:
            self._leave(before)
            self.enter(after, steps_seen)
        return before, after

    def enter(self, block: Block, steps_seen: int) -> None:
        """A block begins."""
        if block.phase is Phase.EXTRA:
            self._measuring.start(block.extra, self._context())
        elif block.phase is Phase.SURVEY:
            self._window = Window(True, self.at_work)
            self._window.prepare()
        elif block.phase is Phase.FULL:
            self._open_full(steps_seen)
        elif block.phase is Phase.LIGHT:
            self._window = Window(False, self.at_work)
            self._window.start()

    def _leave(self, block: Block) -> None:
        if block.phase is Phase.EXTRA:
            self._measuring.stop(block.extra)
        elif block.phase is Phase.FULL:
            # The range of the optimizer's step is still open around this: it is closed at the next call.
            self.is_to_close = True
            if self.by != "optimizer":
                self.close_full()
        elif block.phase is Phase.LIGHT:
            self._close_light(block.steps)

    def _open_full(self, steps_seen: int) -> None:
        if self._window is None:
            self._window = Window(True, self.at_work)
            self._window.prepare()
        self._tags.make_ready()
        self._measuring.begin_full(self._context())
        if hooks.has_compiled():
            self.recorded.note("torch.compile is in use: operators without a Python event have no line")
        else:
            self._tracer = LineTracer(self._files)
            self.recorded.note(self._tracer.start())
        self._window.start()
        self.recorded.first_step = steps_seen
        if self.plan.block.first_counts:
            self.recorded.moments_ns.append(time.time_ns())
        else:
            self.recorded.first_step += 1

    def close_full(self) -> None:
        """Stop the full window and write the trace."""
        self.is_to_close = False
        window, self._window = self._window, None
        tracer, self._tracer = self._tracer, None
        self._measuring.end()
        if tracer is not None:
            tracer.stop()
        self._tags.close_all()
        if window is not None:
            window.stop()
            self._writer.write_trace(window, tracer.moves if tracer else [], self.recorded, self.by)
            self.write_beside()

    def _close_light(self, steps: int) -> None:
        if self._window is not None:
            self._window.stop()
            self._totals.add(self._window.results)
            self.recorded.light_steps += steps
            self._window = None

    def write_beside(self) -> None:
        """Write, or write again, the file beside the trace, if there is one."""
        if self.recorded.trace:
            self._writer.write_beside(self.recorded, self.plan, self.by, self._survey, self._totals, self._measuring)

    def end(self) -> None:
        """The program ends: write what there is."""
        block = self.plan.block
        if block.phase is Phase.LIGHT:
            self._close_light(self.plan.done_in_block)
        elif self.is_to_close or (block.phase is Phase.FULL and self._window is not None):
            self.close_full()
        self.drop()
        self.write_beside()

    def drop(self) -> None:
        """Stop whatever runs, without writing it."""
        if self._tracer is not None:
            self._tracer.stop()
        self._tags.close_all()
        self._measuring.end()
        if self._window is not None:
            self._window.stop()
        self._window = self._tracer = None
        self.is_to_close = False

    def leave_to_parent(self) -> None:
        """In a forked child: what runs is the parent's; here it must neither go on nor be ended as if it were ours."""
        if self._tracer is not None:
            self._tracer.stop()
        if self._window is not None and self._window.is_running:
            stop_watching()

    def _context(self) -> ExtraContext:
        return ExtraContext(dict(self._survey.roots), self._survey.paths)
