"""How convolutions come by their kernels on a simulated device: guessed, tried, or known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.corpus.fault import all_faults
from bench.corpus.simulator.algorithms import TRIED_EACH_TIME, guess, tried
from bench.corpus.simulator.hardware import hardware_of
from torchtraceap.analyzer.timeline.kernel_names import decode
from torchtraceap.analyzer.timeline.model import KernelClass, Timeline

from .conftest import Recorded, run

SIZES = [
    ((5, channels, side, side), (filters, channels, 3, 3))
    for channels in (8, 64)
    for filters in (16, 96)
    for side in range(8, 72, 4)
]


def names_in(timeline: Timeline) -> set[str]:
    return {timeline.trace.name_of(row) for row in timeline.device_rows.tolist()}


@pytest.mark.parametrize("device", ["A100", "MI210"])
def test_some_guesses_are_wrong_and_the_same_each_time(device: str) -> None:
    hardware = hardware_of(device)
    guesses = [guess(hardware, data, weight, "fprop", "c10::BFloat16") for data, weight in SIZES]
    wrong = [one for one in guesses if one is not None]
    assert 0.2 < len(wrong) / len(SIZES) < 0.7
    assert all(0.3 <= one.rate <= 0.6 and decode(one.name).kernel_class is KernelClass.CONV_SIMT for one in wrong)
    assert guesses == [guess(hardware, data, weight, "fprop", "c10::BFloat16") for data, weight in SIZES]
    assert guesses == [guess(hardware, (80, *data[1:]), weight, "fprop", "c10::BFloat16") for data, weight in SIZES]


def test_a_trial_runs_several_different_kernels() -> None:
    for data, weight in SIZES:
        names = [one.name for one in tried(hardware_of("A100"), data, weight, "wgrad", "float")]
        assert len(names) == len(set(names)) >= 3


def test_without_benchmark_some_convolutions_are_guessed_and_slower(convolutions: Recorded, tmp_path: Path) -> None:
    fault = all_faults()["cudnn-autotune-off"]
    off = replace(convolutions, settings=replace(convolutions.settings, cudnn_benchmark=False))
    healthy, spoiled = run(convolutions, "A100", tmp_path), run(off, "A100", tmp_path)
    assert not fault.spoils(healthy).any()
    assert fault.spoils(spoiled).any()
    assert spoiled.trace.dur_ns[spoiled.device_rows].sum() > healthy.trace.dur_ns[healthy.device_rows].sum()


def test_sizes_that_vary_are_tried_each_time(convolutions: Recorded, tmp_path: Path) -> None:
    fault = all_faults()["cudnn-autotune-thrash"]
    settings = replace(convolutions.settings, settings={TRIED_EACH_TIME: "sizes vary"})
    healthy, thrashed = (
        run(convolutions, "A100", tmp_path),
        run(replace(convolutions, settings=settings), "A100", tmp_path),
    )
    assert not fault.spoils(healthy).any()
    spoiled = fault.spoils(thrashed)[thrashed.device_rows]
    time_ns = thrashed.trace.dur_ns[thrashed.device_rows]
    assert time_ns[spoiled].sum() > 0.5 * time_ns.sum()
    assert len(names_in(thrashed) - names_in(healthy)) >= 3
    assert np.count_nonzero(spoiled) > len(healthy.device_rows) / 10
