"""Every rule on its own faults, spoiled: no time, no sizes, others' shapes, lost events. None may raise or mislead.

Random fields of recordings rarely get as deep into a rule as the fault that it looks for does.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from tests.patterns.test_traces import Scene, scenes
from torchtraceap.analyzer.analysis import analyze, analyze_job
from torchtraceap.analyzer.assess import price_all
from torchtraceap.analyzer.detected import Options
from torchtraceap.analyzer.findings import Finding
from torchtraceap.analyzer.trace.limits import TraceError
from torchtraceap.analyzer.trace.model import NONE, Category, InputTable, OpInputs, Trace

HUGE = 2**53
SIZES = ((), (0,), (1,), (0, 0, 0, 0), (HUGE,) * 4, (-1, 3), (1, 1, 1, 1), (8, 3, 224, 224), ((1, 2), (3,)), (2,) * 40)
WORDS = ("", "[]", "[0, 0]", "[1, 2", "True", "nan", "1e400", "-1", "9" * 500, "(" * 50, "None", str(HUGE))
TYPES = ("", "float", "c10::Half", "Scalar", "no type", "long int")


class Hostile:
    """Inputs of which some are not what the operator can have been given."""

    def __init__(self, table: InputTable, seed: int) -> None:
        self._table, self._seed = table, seed

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, index: int) -> OpInputs:
        chance = random.Random(self._seed * 1_000_003 + index)
        found = self._table[index]

        def some(values: tuple, others: tuple) -> tuple:
            kept = values[: chance.randrange(len(values) + 1)] if chance.random() < 0.2 else values
            return tuple(chance.choice(others) if chance.random() < 0.4 else value for value in kept)

        return OpInputs(
            some(found.dims, SIZES), some(found.strides, SIZES), some(found.types, TYPES), some(found.concrete, WORDS)
        )


def without_time(trace: Trace, chance: np.random.Generator) -> Trace:
    """Nothing but steps takes any time."""
    is_step = np.array([name.startswith("ProfilerStep") for name in trace.names], dtype=np.bool_)
    return replace(trace, dur_ns=np.where(is_step[trace.name], trace.dur_ns, 0))


def with_some_time(trace: Trace, chance: np.random.Generator) -> Trace:
    """A third of what is on the device or a call's own takes none, another a hundred times its own."""
    factor = chance.choice([0, 1, 100], len(trace))
    is_moved = np.isin(trace.cat, [Category.KERNEL, Category.MEMCPY, Category.RUNTIME, Category.SYNC])
    return replace(trace, dur_ns=np.where(is_moved, trace.dur_ns * factor, trace.dur_ns))


def without_sizes(trace: Trace, chance: np.random.Generator) -> Trace:
    """Copies of nothing, of unknown and of absurd size."""
    return replace(trace, size_bytes=chance.choice([NONE, 0, 1, 2**60], len(trace)))


def with_hostile_inputs(trace: Trace, chance: np.random.Generator) -> Trace:
    """Sizes, strides, types and values that are none."""
    return replace(trace, input_table=Hostile(trace.input_table, int(chance.integers(1000))))


def with_others_inputs(trace: Trace, chance: np.random.Generator) -> Trace:
    """Operators have each other's inputs."""
    return replace(trace, inputs=chance.permutation(trace.inputs))


def with_others_ids(trace: Trace, chance: np.random.Generator) -> Trace:
    """Launches, autograd and frames are tied to what they have nothing to do with."""
    return replace(
        trace,
        correlation=chance.permutation(trace.correlation),
        external_id=chance.permutation(trace.external_id),
        sequence=chance.permutation(trace.sequence),
        python_parent=chance.permutation(trace.python_parent),
    )


def with_others_names(trace: Trace, chance: np.random.Generator) -> Trace:
    """A tenth of the events has another's name."""
    swapped = np.where(chance.random(len(trace)) < 0.1, chance.permutation(trace.name), trace.name)
    return replace(trace, name=swapped)


def with_events_lost(trace: Trace, chance: np.random.Generator) -> Trace:
    """A third of the events is missing."""
    kept = np.flatnonzero(chance.random(len(trace)) < 0.67)
    place = {row: i for i, row in enumerate(kept.tolist())}
    columns = {
        field.name: column[kept]
        for field in fields(trace)
        if isinstance(column := getattr(trace, field.name), np.ndarray) and len(column) == len(trace)
    }
    left = tuple(replace(one, row=place[one.row]) for one in trace.collectives if one.row in place)
    return replace(trace, **columns, collectives=left)


SPOILINGS: tuple[Callable[[Trace, np.random.Generator], Trace], ...] = (
    without_time,
    with_some_time,
    without_sizes,
    with_hostile_inputs,
    with_others_inputs,
    with_others_ids,
    with_others_names,
    with_events_lost,
)


def spoiled_scenes() -> list:
    """Every scene with two of the spoilings, in turn: a rule has several scenes."""
    return [
        pytest.param(*scene.values, [(2 * i) % len(SPOILINGS), (2 * i + 1) % len(SPOILINGS)], id=scene.id)
        for i, scene in enumerate(scenes("positive_"))
    ]


@pytest.mark.parametrize(("slug", "build", "numbers"), spoiled_scenes())
def test_rules_bear_a_spoiled_fault(slug: str, build: Scene, numbers: list[int]) -> None:
    whole, options = build(), Options(select=(slug,))
    for number in numbers:
        spoil = SPOILINGS[number]
        chance = np.random.default_rng([number, *slug.encode()])
        try:
            if isinstance(whole, list):
                analysis = analyze_job([spoil(trace, chance) for trace in whole], options)
            else:
                analysis = analyze(spoil(whole, chance), options)
        except TraceError:
            continue
        assert not analysis.failures, spoil.__name__
        for found in price_all(analysis):
            assert_makes_sense(found, spoil.__name__)


def assert_makes_sense(found: Finding, spoiling: str) -> None:
    figures = [found.cost_us_per_step, found.saving_us_per_step, found.saving_pct, found.probability]
    figures += [one.value for one in found.evidence if isinstance(one.value, float)]
    assert all(math.isfinite(figure) for figure in figures), (spoiling, found.slug, found.evidence)
    assert 0.0 <= found.saving_pct <= 100.0, (spoiling, found.slug)
    assert 0.0 <= found.probability <= 1.0, (spoiling, found.slug)
