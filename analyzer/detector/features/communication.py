"""Collectives: how many, how large, how much of them nothing hides, and where in the step they stand."""

from __future__ import annotations

import numpy as np

from ...timeline.collectives import CollectiveKind, find_collectives
from ...timeline.intervals import covered_ns, union
from ...timeline.model import KernelClass, Phase
from ...trace.model import NONE, FloatArray
from ..model import Feature
from .figures import among, known, log_count, log_ratio, mean, pct, table
from .marks import Mark
from .view import View

_SMALL_ELEMENTS = 1 << 14

FEATURES: tuple[Feature, ...] = (
    Feature("communication.collectives", "1 (log10(1 + x))", "Collectives."),
    Feature("communication.share", "% of the compute time", "Time in them (on the CPU of the host span)."),
    Feature("communication.exposed", "% of their time", "Time in which no other device work runs."),
    Feature("communication.size", "log10 elements", "Mean elements of one."),
    Feature("communication.small", "% of collectives", "Under 16,384 elements: bound by latency."),
    Feature("communication.same_size", "% of collectives", "Of the kind and size of one before it in the window."),
    Feature(
        "communication.same_size_in_step", "% of collectives", "Of the kind and size of one before it in the step."
    ),
    Feature("communication.rate", "log10 elements/us", "Elements over time: low where ranks wait for one another."),
    Feature("communication.broadcasts", "1 (log10(1 + x))", "Broadcasts: buffers sent round in every step."),
    Feature("communication.in_forward", "1 (log10(1 + x))", "Collectives in the forward pass: statistics, buffers."),
    Feature("communication.bucket_copies", "% of the compute time", "Gradients copied to and from buckets."),
    Feature("communication.unused_search", "% of the host span", "Looking for parameters without a gradient."),
    Feature("communication.wrapper", "% of the host span", "Host time in the data-parallel wrapper."),
    Feature("communication.replicas", "1 (log10(1 + x))", "Replication within one process."),
    Feature("communication.devices", "1", "Devices that this window's work runs on."),
    Feature("communication.host_backend", "% of collectives", "Exchanged by the host though there is a device."),
    Feature("communication.ranks", "log10 1", "Ranks of the job, as the trace says."),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    trace, of = view.trace, view.windows.of
    found = find_collectives(view.timeline)
    inside = of[found.row] != NONE
    row, kind, elements = found.row[inside], found.kind[inside].astype(np.int64), found.elements[inside]
    window, took_ns = of[row], trace.dur_ns[row].astype(np.float64)
    count, total = view.count(window), view.sum(window, took_ns)
    exposed_ns = took_ns - _covered(view, row)
    sized = elements != NONE
    exchanged = view.sum(window[sized], elements[sized])
    has_sizes = bool(sized.any()) or not len(row)
    info = trace.info.distributed
    ranks = info.world_size if info and info.world_size > 0 else 1
    whole = view.work_ns if view.has_device else view.host_ns

    def number(*kinds: CollectiveKind) -> FloatArray:
        return log_count(view.count(window[among(kind, kinds)]))

    return table(
        FEATURES,
        collectives=log_count(count),
        share=pct(total, whole),
        exposed=known(view.has_device, pct(view.sum(window, exposed_ns), total)),
        size=known(has_sizes, log_count(mean(exchanged, view.count(window[sized])))),
        small=known(has_sizes, pct(view.sum(window, sized & (elements < _SMALL_ELEMENTS)), count)),
        same_size=known(has_sizes, pct(view.sum(window, _is_repeated(window, kind, elements)), count)),
        same_size_in_step=known(
            has_sizes, pct(view.sum(window, _is_repeated(view.windows.step[window], kind, elements)), count)
        ),
        rate=known(has_sizes, log_ratio(exchanged, total / 1e3)),
        broadcasts=number(CollectiveKind.BROADCAST),
        in_forward=log_count(view.count(window[view.timeline.phase[row] == Phase.FORWARD])),
        ranks=np.full(view.size, np.log10(ranks)),
        **_wrappers(view, count),
    )


def _covered(view: View, rows: np.ndarray) -> FloatArray:
    """For each collective the time in which other device work runs."""
    others = view.timeline.device_rows
    others = others[view.timeline.kernel_class[others] != KernelClass.COMMUNICATION]
    trace = view.trace
    if not len(rows) or not view.has_device:
        return np.zeros(len(rows))
    busy = union(trace.ts_ns[others], trace.end_ns[others])
    return covered_ns(busy, trace.ts_ns[rows], trace.end_ns[rows]).astype(np.float64)


def _is_repeated(group: np.ndarray, kind: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """For each collective, whether one before it in its group is of its kind and size."""
    order = np.lexsort((elements, kind, group))
    group, kind, elements = group[order], kind[order], elements[order]
    again = np.zeros(len(order), dtype=np.bool_)
    again[order[1:]] = (group[1:] == group[:-1]) & (kind[1:] == kind[:-1]) & (elements[1:] == elements[:-1])
    return again


def _wrappers(view: View, count: FloatArray) -> dict[str, FloatArray]:
    """Columns about what wraps a model for several devices, by name."""
    trace, of = view.trace, view.windows.of
    family_window, work_ns, _, _ = view.work
    launching = view.timeline.launches.op[view.device] if view.has_device else view.ops
    parent = np.append(view.timeline.tree.parent, NONE)[launching]
    named = np.zeros(len(trace) + 1, dtype=np.bool_)
    buckets, searches, wrappers = (view.with_mark(mark) for mark in (Mark.BUCKET, Mark.UNUSED_SEARCH, Mark.WRAPPER))
    named[buckets] = True
    bucket = named[launching] | named[parent]
    pairs = np.sort(view.device_window.astype(np.int64) * 1024 + np.clip(trace.device[view.device], 0, 1023))
    distinct = pairs[np.append(True, pairs[1:] != pairs[:-1])] if len(pairs) else pairs
    by_host = view.with_mark(Mark.HOST_BACKEND)
    return {
        "bucket_copies": known(view.has_ops, pct(view.sum(family_window, work_ns * bucket), view.work_ns)),
        "unused_search": pct(view.sum(of[searches], trace.dur_ns[searches]), view.host_ns),
        "wrapper": pct(view.sum(of[wrappers], trace.dur_ns[wrappers]), view.host_ns),
        "replicas": log_count(view.count(of[view.with_mark(Mark.REPLICA)])),
        "devices": known(view.has_device, view.count(distinct // 1024)),
        "host_backend": known(
            view.has_device, pct(view.count(of[by_host]), np.maximum(count, view.count(of[by_host])))
        ),
    }
