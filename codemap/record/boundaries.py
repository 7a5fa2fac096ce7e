"""Where one step of a program ends and the next begins: at optimizer steps, else at calls of the outermost module."""

from __future__ import annotations

from dataclasses import dataclass

_WAIT_FOR_OPTIMIZER = 64
"""Module calls after which gradients without any optimizer step count as a loop without one."""
_WAIT_FOR_PARAMETERS = 64
"""Module calls after which modules without parameters (losses, transforms) may mark steps too."""
_GIVE_UP = 4
"""The optimizer that ends steps is no longer in use after this many times as many steps of others as there used to be
between two of its own."""


@dataclass(slots=True)
class _Seen:
    count: int = 0
    since: int = 0
    """Events of others since its last."""
    longest: int = 1
    """Most events of others between two of its own."""


class StepFinder:
    """Told of optimizer steps and outermost module calls as they happen; answers which of them part two steps.

    Of several optimizers the one that steps least often ends the step, of equals the one that came last: D, G of a
    GAN, and the outer one where the critic steps five times. Of several modules the one that is called least often
    begins the step, of equals the one that came first: a model, not the transforms of its images.
    """

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.by = ""
        """"optimizer" or "module" once steps were parted by it."""
        self._optimizers: dict[int, _Seen] = {}
        self._modules: dict[int, _Seen] = {}
        self._module_calls = 0
        self._chosen: int | None = None

    def settle(self) -> None:
        """Warm-up is over: what parts steps now goes on doing so."""
        seen = self._optimizers if self.by == "optimizer" else self._modules
        self._chosen = _rarest(seen, last=self.by == "optimizer")

    def optimizer_stepped(self, key: int) -> bool:
        """Whether the step of the optimizer `key` ends a step of the program."""
        if self.by != "optimizer":
            self.by, self._chosen = "optimizer", None
        _count(self._optimizers, key)
        chosen = self._optimizers.get(self._chosen) if self._chosen is not None else None
        if chosen is not None and chosen.since > _GIVE_UP * chosen.longest + _GIVE_UP:
            self._optimizers, self._chosen = {key: _Seen(1)}, None
        return key == (self._chosen or _rarest(self._optimizers, last=True))

    def module_called(self, key: int, has_parameters: bool, has_gradients: bool) -> bool:
        """Whether the call of the outermost module `key` begins a step of the program."""
        self._module_calls += 1
        if self.by == "optimizer":
            return False
        if not has_parameters and (self._module_calls <= _WAIT_FOR_PARAMETERS or self.by):
            return False
        _count(self._modules, key)
        if has_gradients and self._module_calls <= _WAIT_FOR_OPTIMIZER:
            return False
        if self._chosen is not None:
            return key == self._chosen
        if self._modules[key].count == 1 or key != _rarest(self._modules, last=False):
            return False
        self.by = "module"
        return True


def _count(seen: dict[int, _Seen], key: int) -> None:
    for other, state in seen.items():
        if other != key:
            state.since += 1
    state = seen.setdefault(key, _Seen())
    if state.count:
        state.longest = max(state.longest, state.since)
    state.count, state.since = state.count + 1, 0


def _rarest(seen: dict[int, _Seen], last: bool) -> int | None:
    """The key with the fewest events, but more than one if any has; of equals the last or the first one to come."""
    counts = {key: state.count for key, state in seen.items() if state.count > 1} or dict.fromkeys(seen, 1)
    if not counts:
        return None
    fewest = min(counts.values())
    keys = [key for key, count in counts.items() if count == fewest]
    return keys[-1] if last else keys[0]
