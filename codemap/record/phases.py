"""What each step of the program is used for: warm-up, extra measurements, full, plain and light steps, in this order.

Full steps come before the light ones: a program that ends early has then been recorded with stacks. Light steps are
taken in turns with plain ones, so that the overhead is read under the same conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

LIGHT_WINDOW = 10
"""Light steps in a row: what a profiler holds in memory grows with each."""
PLAIN_WINDOW = 3
_SETTLED = 1.5
"""Steps of which the longest takes at most this many times the shortest are no longer warming up."""
_LOOKED_AT = 3
_LONGEST_WARM_UP = 3
"""Warm-up ends after this many times the steps asked for, settled or not."""


class Phase(Enum):
    """What a step is used for."""

    WARM_UP = "warm-up"
    EXTRA = "extra"
    SURVEY = "survey"
    """The model's structure is taken down, and the profiler gets ready."""
    FULL = "full"
    PLAIN = "plain"
    LIGHT = "light"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Block:
    """Some steps in a row. `extra` is which extra measurement an EXTRA block is for."""

    phase: Phase
    steps: int
    first_counts: bool = True
    """False where the first step still bears the switch from what was before."""
    extra: int = -1


def blocks(warm_up: int, full: int, iterations: int, extra_steps: Sequence[int]) -> list[Block]:
    """Everything after warm-up. Without one the first full step must be the program's first: it is surveyed itself."""
    found = [Block(Phase.EXTRA, steps, extra=i) for i, steps in enumerate(extra_steps) if steps > 0]
    if full > 0:
        # The first step with a profiler bears what is done once: a warm-up of its own.
        found += [Block(Phase.SURVEY, 1), Block(Phase.FULL, full + 1, False)] if warm_up else [Block(Phase.FULL, full)]
        # The last full step's ranges are closed in the step after it.
        found += [Block(Phase.PLAIN, 1, False)] if not iterations else []
    while iterations > 0:
        steps = min(iterations, LIGHT_WINDOW)
        found += [Block(Phase.PLAIN, PLAIN_WINDOW + 1, False), Block(Phase.LIGHT, steps + 1, False)]
        iterations -= steps
    return [*found, Block(Phase.DONE, 0)]


class Plan:
    """Where the run stands. `advance` is told of every step that ends."""

    def __init__(self, warm_up: int, following: Sequence[Block]) -> None:
        """`following` as from `blocks`; `warm_up` in steps, at least."""
        self._warm_up = warm_up
        self._blocks = list(following)
        self.done_in_block = 0
        """Steps of the present block that are over."""
        self._warm_up_us: list[float] = []
        self.block = Block(Phase.WARM_UP, 0) if warm_up else self._blocks.pop(0)
        self.times_us: dict[Phase, list[float]] = {phase: [] for phase in Phase}
        """Durations of the steps that count, by what they were used for."""

    @property
    def warm_up_steps(self) -> int:
        """How many steps were let pass as warm-up."""
        return len(self._warm_up_us)

    def advance(self, step_us: float) -> Block:
        """Say that a step has ended; the block that the next one belongs to."""
        block = self.block
        if block.phase is Phase.DONE:
            return block
        if block.phase is Phase.WARM_UP:
            self._warm_up_us.append(step_us)
            if self._is_warm():
                self.block = self._blocks.pop(0)
            return self.block
        self.done_in_block += 1
        if block.first_counts or self.done_in_block > 1:
            self.times_us[block.phase].append(step_us)
        if self.done_in_block >= block.steps:
            self.block, self.done_in_block = self._blocks.pop(0), 0
        return self.block

    def _is_warm(self) -> bool:
        done = len(self._warm_up_us)
        if done < self._warm_up:
            return False
        last = self._warm_up_us[-_LOOKED_AT:]
        is_settled = len(last) == _LOOKED_AT and max(last) <= _SETTLED * min(last)
        return is_settled or done >= self._warm_up * _LONGEST_WARM_UP
