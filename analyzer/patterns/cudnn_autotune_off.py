"""cudnn-autotune-off: convolutions of fixed sizes run with kernels that a trial would not have chosen.

Why it is slow: without `torch.backends.cudnn.benchmark` the library guesses a kernel from rules of thumb. For some
sizes the guess is a generic one (FFT, implicit or explicit products on plain cores) where a far faster one exists.
Trace: such kernels in steady steps, at rates far below the recording's other convolutions, and the flag that
convolutions are called with (`benchmark`), where arguments were recorded.
Edit: those kernels take the time that their FLOPs need at the rate of the other convolutions, not below 0.4 of their
own nor above 0.9: people report 0.4 to 0.7 of the step for nets in which such kernels prevail.
Gate: sizes that change from step to step, for which the trial costs more than it gains; benchmark on; the CPU; a small
share of the step. Where the flag was not recorded the kernels may as well be what a trial chose: then it is a hint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from ..findings import Evidence, Stage
from ..timeline.columns import is_named
from ..timeline.convolution_calls import ConvCalls, backward_rows, convolution_calls
from ..timeline.edit import Edit, Scale, no_rows
from ..timeline.model import Timeline
from ..timeline.roots import by_model_call
from ..timeline.select import count_per_step, events_of, in_typical_step, is_noticeable, launched_by, us_per_step
from ..trace.model import IntArray
from .autotuning import autotuning, shapes_vary
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_GUESSED = re.compile(
    r"(^|[ :_])fft[12]d_|implicit_convolve_sgemm|implicit_precomp|precomputed_convolve|explicit_convolve|[iI]m2[cC]ol"
    r"|pointwise_mult_and_sum_complex|naive_conv|gemv2T.*conv|compute_gemm_pointers"
)
_FACTOR_RANGE = (0.4, 0.9)
_UNKNOWN_FACTOR = 0.7
_SURE, _UNSURE = 0.8, 0.45


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per model whose convolutions run on guessed kernels."""
    if timeline.is_cpu_only or not any(_GUESSED.search(name) for name in timeline.trace.names):
        return
    calls = convolution_calls(timeline)
    is_on = autotuning(timeline)
    if not len(calls) or is_on or shapes_vary(timeline, calls):
        return
    guessed, factor = _guessed(timeline, calls)
    if not is_noticeable(timeline, guessed):
        return
    occurrences = [
        Occurrence(anchor, Edit(scales=(Scale(rows, factor),)), rows)
        for anchor, rows in by_model_call(timeline, guessed)
    ]
    for group in by_site(timeline, occurrences):
        yield Candidate(
            what="convolutions of fixed sizes run on kernels that were guessed",
            remedy="letting cuDNN try them once",
            occurrences=group,
            evidence=(
                Evidence(
                    "kernels",
                    "FFT, implicit and explicit product kernels per step",
                    count_per_step(timeline, guessed),
                    "",
                    events_of(timeline, in_typical_step(timeline, guessed)),
                ),
                Evidence("time", "their time per step", round(us_per_step(timeline, guessed) / 1000, 3), "ms"),
                Evidence("factor", "time at the rate of the other convolutions over theirs, within limits", factor, ""),
                Evidence("benchmark", "benchmark flag of the calls", "off" if is_on is False else "not recorded", ""),
            ),
            probability=_SURE if is_on is False else _UNSURE,
        )


def _guessed(timeline: Timeline, calls: ConvCalls) -> tuple[IntArray, float]:
    """The guessed kernels, forward and backward, and the factor of their time that remains."""
    launched = launched_by(timeline, calls.rows)
    slow = [rows[is_named(timeline.trace, rows, _GUESSED.search)] for rows in launched]
    is_slow = np.array([len(rows) > 0 for rows in slow], dtype=np.bool_)
    after = launched_by(timeline, np.sort(np.concatenate([no_rows(), *backward_rows(timeline, calls)])))
    backward = np.concatenate([no_rows(), *after])
    backward = backward[is_named(timeline.trace, backward, _GUESSED.search)]
    rows = np.sort(np.concatenate([no_rows(), *slow, backward]))
    return rows, _factor(calls, is_slow)


def _factor(calls: ConvCalls, is_slow: np.ndarray) -> float:
    known = np.isfinite(calls.flops) & (calls.time_ns > 0)
    rate = calls.flops[known] / calls.time_ns[known]
    slow, other = rate[is_slow[known]], rate[~is_slow[known]]
    if not len(slow) or not len(other):
        return _UNKNOWN_FACTOR
    return round(float(np.clip(np.mean(slow) / np.mean(other), *_FACTOR_RANGE)), 2)


PATTERN = Pattern(
    code="TAP505",
    slug="cudnn-autotune-off",
    title="cuDNN autotuning is off",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches"),
    group="inefficient_conv",
    stage=Stage.HARDWARE,
)
