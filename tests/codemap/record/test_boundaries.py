"""Which events part the steps of a program."""

from __future__ import annotations

import pytest

from torchtraceap.codemap.record.boundaries import StepFinder
from torchtraceap.codemap.record.phases import LIGHT_WINDOW, PLAIN_WINDOW, Phase, Plan, blocks

MODEL, LOSS, TRANSFORM, HEAD = 1, 2, 3, 4
FIRST, SECOND = 11, 12


def optimizers(finder, keys):
    """Whether each step of these optimizers ends a step of the program."""
    return [finder.optimizer_stepped(key) for key in keys]


def test_every_step_of_the_only_optimizer_ends_a_step():
    finder = StepFinder()
    assert optimizers(finder, [FIRST] * 3) == [True] * 3
    finder.settle()
    assert optimizers(finder, [FIRST] * 3) == [True] * 3


@pytest.mark.parametrize(
    ("cycle", "last"),
    [((FIRST, SECOND), 1), ((FIRST, FIRST, FIRST, SECOND), 3), ((SECOND, FIRST, FIRST), 0)],
    ids=["gan", "critic first", "rare one first"],
)
def test_of_several_optimizers_the_rarest_or_last_ends_the_step(cycle, last):
    finder = StepFinder()
    optimizers(finder, cycle * 5)
    finder.settle()
    assert optimizers(finder, cycle * 2) == [i == last for i in range(len(cycle))] * 2


def test_an_optimizer_that_is_used_no_more_is_forgotten():
    finder = StepFinder()
    optimizers(finder, (FIRST, SECOND) * 5)
    finder.settle()
    assert any(optimizers(finder, [FIRST] * 30)[-2:])


def test_accumulated_gradients_are_one_step():
    finder = StepFinder()
    seen = []
    for _ in range(3):
        for micro in range(4):
            seen.append(finder.module_called(MODEL, True, has_gradients=micro > 0))
        seen.append(finder.optimizer_stepped(FIRST))
    assert seen == ([False] * 4 + [True]) * 3


def calls(finder, keys):
    """Whether each call of these modules begins a step; the transform and the loss have no parameters."""
    return [finder.module_called(key, key not in (LOSS, TRANSFORM), False) for key in keys]


def test_inference_is_parted_at_the_model_not_at_its_transforms():
    finder = StepFinder()
    step = (TRANSFORM, TRANSFORM, MODEL, LOSS)
    assert calls(finder, step * 3) == [False] * 4 + [False, False, True, False] * 2


def test_two_models_in_turn_are_one_step():
    finder = StepFinder()
    calls(finder, (MODEL, HEAD) * 4)
    finder.settle()
    assert calls(finder, (MODEL, HEAD) * 2) == [True, False] * 2


def test_modules_without_parameters_part_steps_where_there_is_nothing_else():
    finder = StepFinder()
    assert any(calls(finder, [TRANSFORM] * 80))


def test_a_loop_without_optimizer_is_parted_at_the_model_after_a_while():
    finder = StepFinder()
    seen = [finder.module_called(MODEL, True, has_gradients=True) for _ in range(80)]
    assert not any(seen[:60]) and seen[-1]


def run(plan, times):
    """The phase of each step, and of the one after the last."""
    return [plan.block.phase, *(plan.advance(time).phase for time in times)]


def test_a_run_goes_through_its_phases():
    plan = Plan(2, blocks(2, 3, 2, [2]))
    phases = run(plan, [5.0] * 24)
    assert phases[:3] == [Phase.WARM_UP] * 3
    rest = [phase for i, phase in enumerate(phases) if i == 0 or phase is not phases[i - 1]]
    assert rest == [
        Phase.WARM_UP,
        Phase.EXTRA,
        Phase.SURVEY,
        Phase.FULL,
        Phase.PLAIN,
        Phase.LIGHT,
        Phase.DONE,
    ]
    counts = [len(plan.times_us[phase]) for phase in (Phase.FULL, Phase.PLAIN, Phase.LIGHT)]
    assert counts == [3, PLAIN_WINDOW, 2]


def test_warm_up_waits_until_steps_take_the_same_time_but_not_for_ever():
    settling = Plan(3, blocks(3, 1, 0, []))
    assert run(settling, [90, 50, 20, 10, 10, 10]).count(Phase.WARM_UP) == 6
    restless = Plan(3, blocks(3, 1, 0, []))
    assert run(restless, [10, 90] * 10).count(Phase.WARM_UP) == 9


def test_without_warm_up_the_first_step_is_recorded():
    plan = Plan(0, blocks(0, 3, 0, []))
    assert plan.block.phase is Phase.FULL
    run(plan, [1.0, 2.0, 3.0])
    assert plan.times_us[Phase.FULL] == [1.0, 2.0, 3.0]


def test_light_steps_take_turns_with_plain_ones():
    plan = Plan(1, blocks(1, 1, 50, []))
    run(plan, [1.0] * 200)
    assert len(plan.times_us[Phase.LIGHT]) == 50
    assert len(plan.times_us[Phase.PLAIN]) == PLAIN_WINDOW * -(-50 // LIGHT_WINDOW)
