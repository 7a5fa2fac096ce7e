"""built-on-host-then-moved: a tensor is filled on the host and copied to the device, the same size in every step.

Why it is slow: the fill runs on the host, the copy comes from pageable memory and holds the host until it is done.
Trace: a factory operator (`zeros`, `arange`, `full`, `tensor`, ...) that launches nothing, and soon after, in the same
function, a copy to the device of a tensor of that size.
Edit: the copy and its wait go (made on the device, or kept as a buffer).
Gate: batches, that is what the data loader makes and what no factory made.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..findings import Evidence
from ..timeline.columns import distinct, is_among
from ..timeline.edit import Edit
from ..timeline.model import Phase, Timeline
from ..timeline.op_inputs import numbers
from ..timeline.roots import MODULE_PREFIX
from ..timeline.select import count_per_step, events_of, in_typical_step, inside, outer_op, outermost, steady
from ..timeline.sites import SiteFinder, group_by_site
from ..timeline.transfers import host_to_device, waits_in
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern

_RANDOM = frozenset({"aten::rand", "aten::randn", "aten::randint", "aten::randperm"})
"""Made in a training loop these stand in for a data set; only inside a model are they the model's own."""

_FACTORIES = frozenset(
    {"aten::zeros", "aten::ones", "aten::full", "aten::eye", "aten::scalar_tensor", "aten::lift_fresh"}
    | {"aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::tril_indices", "aten::triu_indices"}
    | {"aten::arange", "aten::linspace", "aten::logspace", "aten::hann_window"}
    | _RANDOM
)
"""Operators that fill new tensors; `torch.tensor(...)` shows as `aten::lift_fresh`. `aten::empty` is none: batches that
come from loader workers are made with it."""
_SHAPERS = frozenset(
    {"aten::view", "aten::reshape", "aten::unsqueeze", "aten::expand", "aten::repeat", "aten::permute", "aten::flatten"}
    | {"aten::transpose", "aten::stack", "aten::cat", "aten::meshgrid", "aten::triu", "aten::tril", "aten::contiguous"}
    | {"aten::to", "aten::detach_", "aten::detach", "aten::fill_", "aten::clone", "aten::select", "aten::slice"}
    | {"aten::add", "aten::sub", "aten::mul", "aten::div", "aten::pow", "aten::exp", "aten::sin", "aten::cos"}
)
"""What may still be done to the tensor on the host before it is moved."""
_REACH = 6
"""Operators between the factory and the copy that still belong together (`arange(n).float().to(device)`)."""


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that builds on the host and sends."""
    copies = host_to_device(timeline)
    calls = timeline.launches.runtime[copies]
    copies, calls = copies[calls != NONE], calls[calls != NONE].astype(np.int64)
    if not len(copies):
        return
    hosts = outermost(timeline, distinct(np.array([outer_op(timeline, row) for row in calls.tolist()])))
    hosts = hosts[timeline.trace.cat[hosts] == Category.CPU_OP]
    factory = _factories_of(timeline, hosts)
    moved = hosts[factory != NONE]
    if not len(moved):
        return
    waits = dict(zip(moved.tolist(), waits_in(timeline, moved), strict=True))
    owner = inside(timeline, calls, moved)
    for group in group_by_site(timeline, moved):
        occurrences = tuple(
            Occurrence(
                row,
                Edit(removed_ops=np.array([row]), unsynced=waits[row]),
                copies[owner == np.searchsorted(moved, row)],
            )
            for row in group.tolist()
        )
        sent = np.concatenate([occurrence.cost_rows for occurrence in occurrences])
        yield Candidate(
            what="a tensor is built on the host and then moved to the device",
            remedy="building it on the device",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "moves",
                    "tensors built and moved per step",
                    count_per_step(timeline, group),
                    "",
                    events_of(timeline, in_typical_step(timeline, np.sort(sent))),
                ),
            ),
            probability=0.85 if timeline.trace.inputs[group[0]] != NONE else 0.6,
        )


def _factories_of(timeline: Timeline, hosts: IntArray) -> IntArray:
    """For each copying operator, the factory operator that made its input; NONE where the trace shows none."""
    trace, tree = timeline.trace, timeline.tree
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    top = rows[(parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)]
    top = top[np.lexsort((trace.ts_ns[top], trace.thread[top]))]
    at_hosts = np.flatnonzero(is_among(top, hosts))
    place = dict(zip(top[at_hosts].tolist(), at_hosts.tolist(), strict=True))
    copying = set(hosts.tolist())
    found = np.full(len(hosts), NONE, dtype=np.int64)
    finder = SiteFinder(timeline)
    for k, host in enumerate(hosts.tolist()):
        at = place.get(host, 0)
        for maker in reversed(top[max(at - _REACH, 0) : at].tolist()):
            name = trace.name_of(maker)
            if name in _FACTORIES:
                found[k] = maker if _made_for(timeline, finder, maker, host) else NONE
                break
            if name not in _SHAPERS or maker in copying:
                break
    return found


def _made_for(timeline: Timeline, finder: SiteFinder, maker: int, host: int) -> bool:
    """Whether what a factory made can be what `host` sends: same function, same size, and not loading."""
    trace = timeline.trace
    if trace.thread[maker] != trace.thread[host] or timeline.phase[maker] == Phase.DATA:
        return False
    if trace.name_of(maker) in _RANDOM and not any(
        trace.name_of(outer).startswith(MODULE_PREFIX) for outer in timeline.tree.ancestors(maker)
    ):
        return False
    return finder.function(maker) == finder.function(host) and _same_size(timeline, maker, host)


def _same_size(timeline: Timeline, maker: int, host: int) -> bool:
    """Whether the factory's recorded size is the copy's; True where sizes were not recorded."""
    trace = timeline.trace
    moved = trace.inputs_of(host).shape(0)
    asked = numbers(trace.inputs_of(maker), 0) or trace.inputs_of(maker).shape(0)
    return not moved or not asked or prod(asked) == prod(moved)


PATTERN = Pattern(
    code="TAP204",
    slug="built-on-host-then-moved",
    title="Tensor built on the host, then moved",
    fix=FixKind.SAFE,
    find=find,
    needs=("device", "launches"),
    group="transfers and synchronisation",
)
