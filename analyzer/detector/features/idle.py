"""Device idle time by cause, and what holds the host up."""

from __future__ import annotations

import re

import numpy as np

from ...timeline.model import IdleCause
from ...trace.model import NONE, FloatArray
from ..model import Feature
from .figures import known, log_count, pct, table
from .view import View

_SYNC = re.compile(r"(Stream|Device|Event|Ctx)Synchronize|hipMemcpyWithStream|^(cuda|hip)Memcpy$")
_DEVICE_SYNC = re.compile(r"(Device|Ctx)Synchronize")

FEATURES: tuple[Feature, ...] = (
    Feature("idle.total", "% of device time and idle", "How long the device waits for this window's work."),
    Feature("idle.host_bound", "% of device time and idle", "The host had not launched the work yet."),
    Feature("idle.data", "% of device time and idle", "The host waited for the data loader."),
    Feature("idle.sync", "% of device time and idle", "The host had waited for the device, so the queue was empty."),
    Feature("idle.gap", "% of device time and idle", "The device's own gaps between kernels that were queued."),
    Feature("idle.communication", "% of device time and idle", "Waiting for other ranks."),
    Feature("idle.caused", "% of the step", "Idle time whose blame lies in this window, wherever the device waits."),
    Feature("idle.syncs", "1 (log10(1 + x))", "Calls that hold the host until the device is done."),
    Feature("idle.sync_time", "% of the host span", "Host time in them."),
    Feature("idle.device_syncs", "1 (log10(1 + x))", "Calls that wait for the whole device: asked for by the program."),
    Feature("idle.bare_syncs", "% of syncs", "Syncs outside operators: the program's own, not a copy's or a scalar's."),
    Feature("idle.scalar_syncs", "% of syncs", "Syncs inside reads of a scalar."),
    Feature("idle.shape_syncs", "% of syncs", "Syncs inside operators whose output size depends on the data."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    idle, of = view.timeline.idle, np.append(view.windows.of, NONE)
    length_ns = (idle.end_ns - idle.start_ns).astype(np.float64)
    ended, blamed = of[idle.before], of[idle.host]
    window = np.where(ended != NONE, ended, blamed)
    inside = window != NONE
    by_cause = [_sum(view, window, length_ns, inside & (idle.cause == cause)) for cause in IdleCause]
    total = np.sum(by_cause, axis=0)
    whole = total + view.device_ns
    causes = ("host_bound", "data", "sync", "gap", "communication")
    is_device = view.has_device
    return table(
        FEATURES,
        total=known(is_device, pct(total, whole)),
        **{name: known(is_device, pct(part, whole)) for name, part in zip(causes, by_cause, strict=True)},
        caused=known(is_device, pct(_sum(view, blamed, length_ns, blamed != NONE), view.step_ns)),
        **_syncs(view),
    )


def _sum(view: View, window: np.ndarray, values: FloatArray, which: np.ndarray) -> FloatArray:
    return view.sum(window[which], values[which])


def _syncs(view: View) -> dict[str, FloatArray]:
    """Columns about calls that wait for the device, by name."""
    rows = view.runtime[view.named(view.runtime, _SYNC)]
    window = view.windows.of[rows]
    count = view.count(window)
    family = view.outer_family(rows)

    def share(*names: str) -> FloatArray:
        return known(view.has_launches, pct(view.sum(window, view.are_of(family, *names)), count))

    return {
        "syncs": known(view.has_launches, log_count(count)),
        "sync_time": known(view.has_launches, pct(view.sum(window, view.trace.dur_ns[rows]), view.host_ns)),
        "device_syncs": known(view.has_launches, log_count(view.sum(window, view.named(rows, _DEVICE_SYNC)))),
        "bare_syncs": known(view.has_launches, pct(view.sum(window, family == NONE), count)),
        "scalar_syncs": share("host scalar"),
        "shape_syncs": share("data-dependent shape", "index", "index put"),
    }
