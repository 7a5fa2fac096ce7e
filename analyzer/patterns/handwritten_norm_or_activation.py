"""handwritten-norm-or-activation: a norm, an activation or a softmax composed of elementwise operators.

Why it is slow: each of the five to ten operators reads and writes the whole tensor, and autograd keeps what each of
them needs; the library's own operator reads once, writes once, and has a backward of its own.
Trace: in one function, neighbouring operators that belong together: `mean`, `sub`, `pow`, `sqrt`, `div` (layer norm),
`erf` or `tanh` with sums and products (GELU), `sigmoid` and `mul` of equal sizes (SiLU), `exp`, `sum`, `div` (softmax).
Edit: the operators and their backward shrink to what the one operator takes. On the CPU by measured factors: torch
2.13, one thread, fp32, 0.1-1.5 million elements, forward / backward: layer norm 0.10-0.49 / 0.10-0.30 (over channels
0.6-0.7 / 0.3-0.5), GELU 0.29-0.48 / 0.29-0.46, its tanh form 0.32-0.47 / 0.27-0.54, SiLU 0.64-0.69 / 0.62-0.86,
Hardswish 0.26-0.31 / 0.17-0.43, Hardsigmoid 0.24-0.45 / 0.44-0.66, softmax 0.24-0.31 / 0.24-0.39. On a device, where
all of them are passes over memory, one pass of average length stays.
Gate: scale and shift alone (a frozen batch norm: 1.03x for 20-30 % more memory); on the CPU Mish (0.8-0.96, but the
backward takes 1.3-2.2 times as long) and RMS norm (0.8-1.4 both ways).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..findings import Evidence
from ..timeline.columns import is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import Phase, Timeline
from ..timeline.select import backward_of, backward_ops, count_per_step, events_of, in_typical_step, launched_by, steady
from ..timeline.sites import SiteFinder
from ..trace.model import NONE, Category, IntArray
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_POINTWISE = frozenset(
    f"aten::{name}"
    for name in (
        *(
            "add",
            "add_",
            "sub",
            "sub_",
            "rsub",
            "mul",
            "mul_",
            "div",
            "div_",
            "true_divide",
            "neg",
            "reciprocal",
            "pow",
        ),
        *("square", "sqrt", "rsqrt", "exp", "erf", "tanh", "sigmoid", "softplus", "hardtanh", "relu6", "clamp", "pow_"),
        *("mean", "sum", "var", "std", "max", "amax", "square_", "sqrt_", "exp_", "tanh_", "sigmoid_", "clamp_"),
        *("hardtanh_", "relu6_", "clamp_min", "clamp_max", "var_mean"),
    )
)
_VIEWS = frozenset(
    f"aten::{name}"
    for name in ("unsqueeze", "slice", "select", "view", "expand", "to", "type_as", "expand_as", "alias")
)
"""May stand among them (`weight[:, None, None]`) and stay."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """One norm or activation: the operator to look for, what stands near it, and what the library's own leaves."""

    name: str
    keys: frozenset[str]
    needs: tuple[frozenset[str], ...]
    """Of each group at least one must be among the operators."""
    lacks: frozenset[str]
    reach: tuple[int, int]
    """How many operators before and after the key may belong to it."""
    cpu: tuple[float, float]
    """Share of forward and of backward time that is left on the CPU; 1 where it gains nothing."""


def _names(*words: str) -> frozenset[str]:
    return frozenset(f"aten::{word}{end}" for word in words for end in ("", "_"))


_SUMS, _PRODUCTS, _QUOTIENTS = _names("add", "sub"), _names("mul"), _names("div", "true_divide", "mul", "reciprocal")
_ROOTS = _names("rsqrt", "sqrt", "std")
_KINDS = (
    _Kind("layer norm", _ROOTS, (_names("mean"), _names("sub"), _QUOTIENTS), _names("exp", "erf"), (8, 5), (0.2, 0.22)),
    _Kind(
        "RMS norm", _ROOTS, (_names("mean"), _names("pow", "square", "mul"), _QUOTIENTS), _names("sub"), (4, 3), (1, 1)
    ),
    _Kind("GELU", _names("erf"), (_names("mul"), _names("add")), _names("exp"), (2, 3), (0.36, 0.36)),
    _Kind("GELU", _names("tanh"), (_names("mul"), _names("add")), _names("softplus", "exp"), (7, 3), (0.4, 0.3)),
    _Kind("Mish", _names("softplus"), (_names("tanh"), _names("mul")), _names("erf"), (0, 2), (1, 1)),
    _Kind("softmax", _names("exp"), (_names("sum"), _names("div")), _names("erf", "tanh"), (2, 2), (0.3, 0.3)),
    _Kind("SiLU", _names("sigmoid"), (_names("mul"),), _names("exp"), (0, 1), (0.67, 0.68)),
    _Kind(
        "Hardswish",
        _names("hardtanh", "relu6", "clamp"),
        (_names("add"), _names("mul"), _names("div", "mul")),
        _names("exp"),
        (1, 2),
        (0.3, 0.35),
    ),
    _Kind(
        "Hardsigmoid",
        _names("hardtanh", "relu6", "clamp"),
        (_names("add"), _names("div")),
        _names("exp"),
        (1, 1),
        (0.4, 0.5),
    ),
)
_CHANNEL_NORM_CPU = (0.65, 0.4)


@dataclass(frozen=True, slots=True)
class _Composed:
    """The operators of one norm or activation."""

    kind: _Kind
    rows: IntArray
    cpu: tuple[float, float]


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per site that composes a norm or an activation."""
    found = list(_composed(timeline))
    if not found:
        return
    backward = backward_ops(timeline)
    occurrences = {int(one.rows[0]): _occurrence(timeline, one, backward) for one in found}
    named = {int(one.rows[0]): one for one in found}
    for group in by_site(timeline, [one for one in occurrences.values() if one.edit.scales]):
        parts = [named[occurrence.anchor] for occurrence in group]
        rows = np.sort(np.concatenate([one.rows for one in parts]))
        kind = parts[0].kind.name
        yield Candidate(
            what=f"{kind} is computed operator by operator",
            remedy=f"the library's {kind}",
            occurrences=group,
            evidence=(
                Evidence(
                    "operators",
                    f"operators that make up {kind} per step",
                    count_per_step(timeline, rows),
                    "",
                    events_of(timeline, in_typical_step(timeline, rows)),
                ),
                Evidence("kind", "what they compute, as it seems", kind, ""),
            ),
            probability=0.8,
        )


def composed_rows(timeline: Timeline) -> IntArray:
    """The operators that make up norms, activations and softmaxes."""
    return np.concatenate([np.empty(0, dtype=np.int64), *(one.rows for one in _composed(timeline))])


def _composed(timeline: Timeline) -> Iterator[_Composed]:
    trace = timeline.trace
    keys = frozenset().union(*(kind.keys for kind in _KINDS))
    key_rows = steady(timeline, trace.rows_named(tuple(keys)))
    if not len(key_rows):
        return
    top = _top_operators(timeline)
    at = np.flatnonzero(is_among(top, key_rows))
    names = [trace.names[i] for i in trace.name[top].tolist()]
    finder, taken = SiteFinder(timeline), set[int]()
    kinds = [kind for kind in _KINDS if not timeline.is_cpu_only or kind.cpu[0] < 1]
    for position in at.tolist():
        if position in taken:
            continue
        for kind in kinds:
            if names[position] not in kind.keys or not _is_near(names, position, kind):
                continue
            chain = _chain(timeline, finder, top, names, position, kind.reach)
            if chain and _is_kind(names, chain, position, kind) and _sizes_fit(timeline, top, names, chain, kind):
                taken.update(chain)
                rows = top[np.array(chain)]
                yield _Composed(kind, rows, _cpu_shares(timeline, kind, rows))
                break


def _top_operators(timeline: Timeline) -> IntArray:
    """Forward operators of the steady steps that lie in no other one, by thread and time; the optimizer's left out."""
    trace, tree = timeline.trace, timeline.tree
    rows = steady(timeline, trace.rows(Category.CPU_OP))
    parent = tree.parent[rows]
    is_top = (parent == NONE) | (tree.op[np.maximum(parent, 0)] == NONE)
    rows = rows[is_top & (timeline.forward_op[rows] == NONE) & (timeline.phase[rows] != Phase.OPTIMIZER)]
    return rows[np.lexsort((trace.ts_ns[rows], trace.thread[rows]))]


def _is_near(names: list[str], at: int, kind: _Kind) -> bool:
    """Whether what a kind needs stands anywhere round its key, views counted too: a first look, at no cost."""
    near = set(names[max(at - 2 * kind.reach[0], 0) : at + 2 * kind.reach[1] + 1])
    return all(not near.isdisjoint(group) for group in kind.needs)


def _chain(
    timeline: Timeline, finder: SiteFinder, top: IntArray, names: list[str], at: int, reach: tuple[int, int]
) -> list[int]:
    """Places of the elementwise operators round the key, in its function, that are within reach; views left out."""
    function, thread = finder.function(int(top[at])), timeline.trace.thread[top[at]]
    found = [at]
    for step, most in ((-1, reach[0]), (1, reach[1])):
        place, count = at + step, 0
        while 0 <= place < len(top) and count < most:
            row = int(top[place])
            is_here = timeline.trace.thread[row] == thread and finder.function(row) == function
            if not is_here or names[place] not in _POINTWISE | _VIEWS:
                break
            if names[place] in _POINTWISE:
                found.append(place)
                count += 1
            place += step
    return sorted(found)


def _is_kind(names: list[str], chain: list[int], at: int, kind: _Kind) -> bool:
    counts = Counter(names[place] for place in chain)
    counts[names[at]] -= 1
    return not any(counts[name] for name in kind.lacks) and all(
        any(counts[name] for name in group) for group in kind.needs
    )


def _sizes_fit(timeline: Timeline, top: IntArray, names: list[str], chain: list[int], kind: _Kind) -> bool:
    """Whether recorded sizes allow it: a gate, `x * sigmoid(fc(pooled))`, multiplies by another size than its own."""
    if kind.name != "SiLU":
        return True
    sizes = [timeline.trace.inputs_of(int(top[place])) for place in chain]
    gate = sizes[0].shape(0)
    return not gate or all(sizes[-1].shape(i) == gate for i in (0, 1))


def _cpu_shares(timeline: Timeline, kind: _Kind, rows: IntArray) -> tuple[float, float]:
    if kind.name != "layer norm":
        return kind.cpu
    means = [row for row in rows.tolist() if timeline.trace.name_of(row) == "aten::mean"]
    over = {timeline.trace.inputs_of(row).value(1) for row in means}
    return _CHANNEL_NORM_CPU if "[1]" in over else kind.cpu


def _occurrence(timeline: Timeline, found: _Composed, backward: IntArray) -> Occurrence:
    anchor, caused = int(found.rows[0]), np.concatenate(backward_of(timeline, found.rows, backward))
    if timeline.is_cpu_only:
        parts = ((found.rows, found.cpu[0]), (caused, found.cpu[1]))
        scales = tuple(Scale(rows, factor) for rows, factor in parts if len(rows))
        return Occurrence(anchor, Edit(scales=scales), np.sort(np.concatenate([found.rows, caused])))
    scales = []
    device: list[IntArray] = []
    for hosts in (found.rows, caused):
        launched = np.concatenate([found.rows[:0], *launched_by(timeline, hosts)]) if len(hosts) else hosts
        if len(launched):
            scales += [Scale(np.concatenate([hosts, launched]), round(1 / len(launched), 3))]
            device.append(launched)
    return Occurrence(anchor, Edit(scales=tuple(scales)), np.sort(np.concatenate([found.rows[:0], *device])))


PATTERN = Pattern(
    code="TAP702",
    slug="handwritten-norm-or-activation",
    title="Norm or activation written out",
    fix=FixKind.SAFE,
    find=find,
    needs=("launches",),
    group="pointwise and operators",
)
