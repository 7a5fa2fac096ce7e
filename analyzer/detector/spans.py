"""When events count, and how much of a step lies between two moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..timeline.memo import once
from ..timeline.model import Timeline
from ..trace.model import DEVICE_CATEGORIES, NONE, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Costs:
    """Host and device time between any two moments of the chosen steps, as shares of the step."""

    step_ns: FloatArray
    """Shape (steps,)."""
    device_step_ns: FloatArray
    launch_ns: IntArray
    """Moments at which device work was launched, in order."""
    before_ns: FloatArray
    """Shape (launches + 1,): device work launched before each."""

    def share(self, step: IntArray, start_ns: IntArray, end_ns: IntArray) -> FloatArray:
        """The larger of the two shares of each span."""
        host = (end_ns - start_ns) / self.step_ns[step]
        if not len(self.launch_ns):
            return host
        first, last = np.searchsorted(self.launch_ns, np.concatenate([start_ns, end_ns])).reshape(2, -1)
        device = (self.before_ns[last] - self.before_ns[first]) / self.device_step_ns[step]
        return np.maximum(host, device)


def measure_costs(timeline: Timeline, moment_ns: IntArray) -> Costs:
    """Prepare `Costs.share`. `moment_ns`: the host time at which each event counts."""
    steps, device = timeline.steps, timeline.device_rows
    device = device[np.argsort(moment_ns[device], kind="stable")]
    took = timeline.trace.dur_ns[device].astype(np.float64)
    per_step = np.bincount(steps.of[device], weights=took, minlength=len(steps))
    return Costs(
        step_ns=np.maximum(steps.duration_ns, 1).astype(np.float64),
        device_step_ns=np.maximum(per_step, 1.0),
        launch_ns=moment_ns[device],
        before_ns=np.concatenate([[0.0], np.cumsum(took)]),
    )


@once
def launch_moments(timeline: Timeline) -> IntArray:
    """Shape (n,): the host time at which each event counts: its start, or its launch for device work.

    Kernels that one call launched together, as a graph's are, stand in their order at even distances in the call.
    """
    trace, launches = timeline.trace, timeline.launches
    moment = trace.ts_ns.copy()
    device = trace.rows(*DEVICE_CATEGORIES)
    runtime = launches.runtime[device]
    cause = np.where(runtime != NONE, runtime, launches.op[device])
    moment[device] = np.where(cause != NONE, trace.ts_ns[cause], trace.ts_ns[device])
    rows = launches.device_rows
    call = launches.runtime[rows]
    first = launches.device_start[call]
    count = launches.device_start[call + 1] - first
    moment[rows] += (np.arange(len(rows)) - first) * trace.dur_ns[call] // np.maximum(count, 1)
    return moment


def usual_share(part: IntArray, share: FloatArray, parts: int, steps: int) -> FloatArray:
    """Shape (parts,): the share of a step that each part takes: the median over its units, one in each step; of parts
    that some steps lack the mean over all steps.

    One step that the machine held up must not decide about all of them.
    """
    count = np.bincount(part, minlength=parts)
    ordered = share[np.lexsort((share, part))]
    first = np.cumsum(count) - count
    middle = np.append(ordered, 0.0)[np.minimum(first + (count - 1) // 2, len(ordered))]
    return np.where(count == steps, middle, np.bincount(part, weights=share, minlength=parts) / steps)
