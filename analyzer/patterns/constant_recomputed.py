"""constant-recomputed: a tensor that only sizes and settings determine is made anew in every forward.

Why it is slow: a grid of coordinates, a sine encoding, a causal mask is a dozen small operators; each costs a dispatch
(and a launch) and gives what the step before gave. Resizing a table of positions to the same size is the same.
Trace: `arange`, `linspace`, `meshgrid`, ... and the maths on their results, or an interpolation of one image's size
without gradient, in every step with the same sizes.
Edit: those operators go.
Gate: sites that differ between steps; results that mix with data; under 0.2 % of the step; what the source shows to
depend on data, or to run once (it decides).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod

import numpy as np

from ..findings import Evidence
from ..timeline.edit import Edit
from ..timeline.model import Phase, Timeline
from ..timeline.op_inputs import numbers, tensors
from ..timeline.select import (
    count_per_step,
    events_of,
    in_typical_step,
    launched_by,
    ops_named,
    steady,
    us_per_step,
)
from ..timeline.sites import SiteFinder
from ..trace.model import NONE, Category, IntArray, OpInputs
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_SEEDS = (
    "aten::arange",
    "aten::linspace",
    "aten::logspace",
    "aten::eye",
    "aten::meshgrid",
    "aten::tril_indices",
    "aten::triu_indices",
    "aten::hann_window",
    "aten::hamming_window",
    "aten::triu",
    "aten::tril",
)
_RESIZES = (
    "aten::upsample_bicubic2d",
    "aten::upsample_bilinear2d",
    "aten::_upsample_bicubic2d_aa",
    "aten::_upsample_bilinear2d_aa",
)


def _names(*words: str) -> frozenset[str]:
    return frozenset(f"aten::{word}" for word in words)


_KEEPING = _names(
    *("view", "reshape", "unsqueeze", "squeeze", "permute", "transpose", "t", "flatten", "contiguous", "clone", "to"),
    *("_to_copy", "float", "detach", "alias", "unflatten", "movedim", "flip", "roll"),
    *(
        "sin",
        "cos",
        "exp",
        "log",
        "neg",
        "abs",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "floor",
        "round",
        "square",
        "triu",
        "tril",
    ),
    *("sin_", "cos_", "exp_", "neg_", "cumsum", "fill_", "zero_", "masked_fill", "masked_fill_", "bool", "ones_like"),
)
"""Results of as many elements as their operand."""
_JOINING = _names(
    *("add", "sub", "rsub", "mul", "div", "pow", "floor_divide", "remainder", "true_divide", "atan2", "eq", "ne", "lt"),
    *("gt", "le", "ge", "where", "maximum", "minimum", "add_", "sub_", "mul_", "div_", "outer", "matmul", "ger"),
)
_COLLECTING = _names("stack", "cat", "meshgrid", "repeat", "expand", "repeat_interleave", "cartesian_prod")
_PARTS = _names("slice", "select", "narrow", "chunk", "split", "unbind", "index")
_LONGEST = 40
_FACTORY_OPTIONS = 4
_NOTICEABLE_SHARE = 0.002


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that makes the same tensor in every step."""
    occurrences = [*_made(timeline), *_resized(timeline)]
    for group in by_site(timeline, occurrences):
        rows = np.sort(np.concatenate([occurrence.edit.removed_ops for occurrence in group]))
        cost_rows = np.sort(np.concatenate([occurrence.cost_rows for occurrence in group]))
        anchors = np.array([occurrence.anchor for occurrence in group], dtype=np.int64)
        if not _is_same_in_every_step(timeline, anchors):
            continue
        host_us = us_per_step(timeline, rows)
        if max(host_us, us_per_step(timeline, cost_rows)) < _NOTICEABLE_SHARE * timeline.step_us:
            continue
        names = sorted({timeline.trace.name_of(row).removeprefix("aten::") for row in anchors.tolist()})
        yield Candidate(
            what="a constant is computed anew in every step",
            remedy="keeping it",
            occurrences=group,
            evidence=(
                Evidence(
                    "operators",
                    "operators that make it per step",
                    count_per_step(timeline, rows),
                    "",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence("begins", "it begins with", ", ".join(names), ""),
            ),
            probability=0.7,
        )


def _made(timeline: Timeline) -> Iterator[Occurrence]:
    """Chains of operators that begin with a factory and take nothing else."""
    seeds = ops_named(timeline, _SEEDS)
    seeds = seeds[(timeline.phase[seeds] != Phase.DATA) & (timeline.phase[seeds] != Phase.OPTIMIZER)]
    seeds = seeds[timeline.forward_op[seeds] == NONE]
    if not len(seeds):
        return
    top = _top_operators(timeline)
    place = {row: at for at, row in enumerate(top.tolist())}
    finder, taken = SiteFinder(timeline), set[int]()
    for seed in seeds.tolist():
        if seed in taken or seed not in place:
            continue
        rows = _chain(timeline, finder, top, place[seed])
        taken.update(rows)
        yield _occurrence(timeline, np.array(rows, dtype=np.int64))


def _top_operators(timeline: Timeline) -> IntArray:
    trace, tree = timeline.trace, timeline.tree
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    top = rows[(parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)]
    return top[np.lexsort((trace.ts_ns[top], trace.thread[top]))]


def _chain(timeline: Timeline, finder: SiteFinder, top: IntArray, at: int) -> list[int]:
    """The seed and what follows it in its function, as long as it works on nothing but what was made before."""
    trace = timeline.trace
    seed = int(top[at])
    function, thread = finder.function(seed), trace.thread[seed]
    found = [seed]
    sizes = {_made_size(trace.inputs_of(seed), trace.name_of(seed))}
    for row in top[at + 1 : at + _LONGEST].tolist():
        name = trace.name_of(row)
        if trace.thread[row] != thread or finder.function(row) != function:
            break
        inputs = trace.inputs_of(row)
        if name not in _SEEDS and not _is_of(inputs, name, sizes):
            break
        sizes.add(_made_size(inputs, name))
        found.append(row)
    return found


def _is_of(inputs: OpInputs, name: str, sizes: set[int]) -> bool:
    """Whether an operator of the kinds that make constants takes only operands of sizes made before."""
    if name not in _KEEPING | _JOINING | _COLLECTING | _PARTS:
        return False
    operands = [prod(dims) for _, dims in tensors(inputs)]
    return all(size in sizes or size == 1 for size in operands) or (not operands and not inputs.dims)


def _made_size(inputs: OpInputs, name: str) -> int:
    """Elements of an operator's result, as its recorded inputs tell; 0 where they do not."""
    operands = [dims for _, dims in tensors(inputs)]
    if name in _COLLECTING - _names("stack", "cat") or name in ("aten::outer", "aten::ger", "aten::meshgrid"):
        asked = prod(numbers(inputs, 1)) if name in _names("repeat", "expand") else 0
        whole = prod(prod(dims) for dims in operands)
        return whole if name in _names("meshgrid", "outer", "ger") else asked
    if name in _names("stack", "cat"):
        return sum(prod(dims) for dims in operands)
    if not operands:
        return _factory_size(inputs, name)
    rank = max(len(dims) for dims in operands)
    padded = [(1,) * (rank - len(dims)) + dims for dims in operands]
    return prod(max(column) for column in zip(*padded, strict=True))


def _factory_size(inputs: OpInputs, name: str) -> int:
    """Elements that a factory makes, from its recorded numbers; type, layout, device and pinning follow them."""
    texts = inputs.concrete[: max(len(inputs.concrete) - _FACTORY_OPTIONS, 0)]
    try:
        given = [float(text) for text in texts]
    except ValueError:
        return 0
    if name == "aten::arange" and given:
        start, end, step = (0.0, given[0], 1.0) if len(given) == 1 else (*given[:2], (given[2:] or [1.0])[0])
        return max(0, ceil((end - start) / step)) if step else 0
    if name in ("aten::linspace", "aten::logspace") and len(given) > 2:
        return int(given[2])
    return int(prod(given * 2)) if name == "aten::eye" and len(given) == 1 else int(prod(given)) if given else 0


def _resized(timeline: Timeline) -> Iterator[Occurrence]:
    """Interpolations of one image that nothing flows back through: of a table of positions, perhaps."""
    rows = ops_named(timeline, _RESIZES)
    rows = rows[(timeline.forward_op[rows] == NONE) & (timeline.phase[rows] != Phase.DATA)]
    if not len(rows) or np.any(timeline.phase == Phase.BACKWARD):
        return
    for row in rows.tolist():
        size = timeline.trace.inputs_of(row).shape(0)
        if not size or size[0] == 1:
            yield _occurrence(timeline, np.array([row], dtype=np.int64))


def _occurrence(timeline: Timeline, rows: IntArray) -> Occurrence:
    device = np.concatenate([rows[:0], *launched_by(timeline, rows)])
    return Occurrence(int(rows[0]), Edit(removed_ops=rows), rows if timeline.is_cpu_only else device)


def _is_same_in_every_step(timeline: Timeline, anchors: IntArray) -> bool:
    """Whether the same inputs come in each steady step."""
    seen: dict[int, list[int]] = {}
    for row in anchors.tolist():
        seen.setdefault(int(timeline.steps.of[row]), []).append(int(timeline.trace.inputs[row]))
    steps = timeline.steps.steady
    recorded = [seen.get(step, []) for step in steps.tolist()]
    return len(steps) > 1 and bool(recorded[0]) and all(inputs == recorded[0] for inputs in recorded)


PATTERN = Pattern(
    code="TAP303",
    slug="constant-recomputed",
    title="Constant computed in every step",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("shapes",),
    group="launch-bound and compile",
)
