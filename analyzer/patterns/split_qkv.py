"""split-qkv: queries, keys and values of one input are projected by three linear layers.

Why it is slow: three small products read the same activations three times, and each fills the device alone; one
product of three times the width fills it better, and is launched once.
Trace: three linear layers in a row on inputs of one shape, in one execution of one function, nothing but changes of
view between them, then an attention (fused, or a batched product).
Edit: two of the layers go with what they launched. The third one's kernels take as long as all three did, less what
the tail of each is worth: a kernel's time goes by the waves of 128 x 128 tiles that its result needs on the device's
multiprocessors, and the joined result needs fewer. Never under 0.4 of the three: a B200 took 80 us instead of 190
for Flux's blocks (sglang pull request 14505). In the backward only one of the two kinds of products gains so. On the
CPU the forward takes 0.85 of what it took (torch 2.13, one thread, from 12 x 384 tokens of 128 down to 16 of 64: 0.66
to 1.01, in the middle 0.80); the backward stays as it was (0.7 to 1.3, without order).
Gate: cross-attention, as the shapes or the source show it; `nn.MultiheadAttention`, whose weights are packed already;
layers with an activation between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod

import numpy as np

from ..findings import Evidence
from ..timeline.columns import is_among
from ..timeline.edit import Edit, Scale
from ..timeline.model import KernelClass, Timeline
from ..timeline.op_inputs import of_each
from ..timeline.select import (
    backward_of,
    backward_ops,
    count_per_step,
    events_of,
    in_typical_step,
    launched_by,
    outside_backward,
    us_per_step,
)
from ..timeline.sites import SiteFinder
from ..trace.model import NONE, Dims, IntArray, OpInputs
from .base import Candidate, FixKind, Occurrence, Pattern
from .occurrences import by_site

_LAYERS = {"aten::linear": (0, 1), "aten::addmm": (1, 2), "aten::mm": (0, 1), "aten::matmul": (0, 1)}
"""Operators that project, with the arguments that hold the input and the weight."""
_ATTENTION = frozenset(
    {"aten::scaled_dot_product_attention", "aten::bmm", "aten::baddbmm", "aten::einsum", "aten::softmax"}
    | {"aten::_flash_attention_forward", "aten::_efficient_attention_forward", "aten::_softmax"}
)
_ACTIVATIONS = frozenset(
    {"aten::relu", "aten::relu_", "aten::gelu", "aten::silu", "aten::silu_", "aten::sigmoid", "aten::tanh"}
    | {"aten::conv2d", "aten::conv1d", "aten::conv3d", "aten::leaky_relu", "aten::hardswish"}
)
"""Operators that stand for another layer: what they part is no set of projections of one tensor."""
_OTHER, _ATTENDS = -1, -2

_TILE = 128
_LEAST_SHARE = 0.4
_CPU_SHARE = 0.85
_NOTICEABLE_SHARE = 0.003


def find(timeline: Timeline) -> Iterator[Candidate]:
    """One candidate per function that projects queries, keys and values apart."""
    triples = list(_triples(timeline))
    if not triples:
        return
    backward = backward_ops(timeline)
    for occurrences in by_site(timeline, (_occurrence(timeline, triple, backward) for triple in triples)):
        anchors = np.array([occurrence.anchor for occurrence in occurrences])
        layers = np.sort(np.concatenate([triple for triple in triples if triple[0] in anchors]))
        cost_rows = np.concatenate([occurrence.cost_rows for occurrence in occurrences])
        spent_us = max(us_per_step(timeline, layers), us_per_step(timeline, cost_rows))
        if spent_us < _NOTICEABLE_SHARE * timeline.step_us:
            continue
        data, weights = _sizes(timeline.trace.name_of(int(layers[0])), timeline.trace.inputs_of(int(layers[0])))
        yield Candidate(
            what="queries, keys and values are projected by three layers",
            remedy="one layer for the three",
            occurrences=occurrences,
            evidence=(
                Evidence(
                    "projections",
                    "projections per step",
                    count_per_step(timeline, layers),
                    "",
                    events_of(timeline, in_typical_step(timeline, layers)),
                ),
                Evidence("input", "input of each", "x".join(map(str, data)), "elements"),
                Evidence("weight", "weight of each", "x".join(map(str, weights)), "elements"),
            ),
            probability=0.8,
        )


def _triples(timeline: Timeline) -> Iterator[IntArray]:
    """Three layers on inputs of one shape, in a row, next to an attention, in one execution of a function."""
    trace = timeline.trace
    rows = outside_backward(timeline, (*_LAYERS, *_ATTENTION, *_ACTIVATIONS))
    if len(rows) < 4:
        return
    kind, thread = _kinds(timeline, rows), trace.thread[rows]
    first, last = slice(None, -3), slice(3, None)
    is_triple = (kind[first] >= 0) & (kind[1:-2] == kind[first]) & (kind[2:-1] == kind[first])
    is_triple &= (kind[last] == _ATTENDS) & (thread[first] == thread[last])
    finder = SiteFinder(timeline)
    for at in np.flatnonzero(is_triple).tolist():
        triple = rows[at : at + 3]
        functions = {_function(timeline, finder, row) for row in triple.tolist()}
        if len(functions) == 1 and not _is_packed(timeline, int(triple[0])):
            yield triple


def _function(timeline: Timeline, finder: SiteFinder, row: int) -> int | str:
    """The function's execution that a layer is called in; comprehensions and lambdas belong to what holds them."""
    found = finder.function(row)
    while isinstance(found, int) and found != NONE and timeline.trace.name_of(found).endswith(">"):
        outer = int(timeline.tree.parent[found])
        found = int(timeline.tree.python[outer]) if outer != NONE else NONE
    return found


def _kinds(timeline: Timeline, rows: IntArray) -> IntArray:
    """For each operator: a number that layers on inputs of one shape share, or that it attends, or neither."""
    trace = timeline.trace
    keys: dict[tuple[Dims, int, str], int] = {}

    def number(name: str, inputs: OpInputs) -> int:
        if name in _ACTIVATIONS:
            return _OTHER
        data, weight = _sizes(name, inputs) if name in _LAYERS else ((), ())
        if len(weight) != 2 or len(data) < 2:
            return _ATTENDS if name in _ATTENTION or len(weight) > 2 else _OTHER
        width = weight[1] if name == "aten::linear" else weight[0]
        return keys.setdefault((data, width, inputs.dtype(_LAYERS[name][1])), len(keys))

    kinds = np.empty(len(rows), dtype=np.int64)
    names = trace.name[rows]
    for name in set(names.tolist()):
        at = np.flatnonzero(names == name)
        kinds[at] = of_each(trace, rows[at], lambda inputs, name=trace.names[name]: number(name, inputs))
    return kinds


def _sizes(name: str, inputs: OpInputs) -> tuple[Dims, Dims]:
    data, weight = _LAYERS[name]
    return inputs.shape(data), inputs.shape(weight)


def _is_packed(timeline: Timeline, row: int) -> bool:
    """Whether torch's own multi-head attention projects here: its weights are packed, its inputs differ."""
    trace = timeline.trace
    return any("multi_head_attention_forward" in trace.name_of(outer) for outer in timeline.tree.ancestors(row))


def _occurrence(timeline: Timeline, triple: IntArray, backward: IntArray) -> Occurrence:
    if timeline.is_cpu_only:
        return Occurrence(int(triple[0]), Edit(scales=(Scale(triple, _CPU_SHARE),)), triple)
    share = _joined_share(timeline, triple)
    launched = launched_by(timeline, triple)
    caused = backward_of(timeline, triple, backward)
    backward_launched = [np.concatenate(parts) if (parts := launched_by(timeline, ops)) else ops[:0] for ops in caused]
    scales = (
        Scale(launched[0], _growth(timeline, launched, share)),
        Scale(backward_launched[0], _growth(timeline, backward_launched, (1 + share) / 2)),
    )
    removed = np.sort(np.concatenate([triple[1:], *caused[1:]]))
    return Occurrence(int(triple[0]), Edit(scales, removed), np.sort(np.concatenate([*launched, *backward_launched])))


def _growth(timeline: Timeline, launched: list[IntArray], share: float) -> float:
    """What the first layer's kernels take when they do the work of all, over what they took alone."""
    took = [int(timeline.trace.dur_ns[_products(timeline, rows)].sum()) for rows in launched]
    return round(max(share * sum(took) / took[0], 1.0), 2) if took[0] else 1.0


def _products(timeline: Timeline, device: IntArray) -> IntArray:
    """The matrix kernels; all kernels where the names tell of none."""
    classes = (KernelClass.GEMM_TENSOR_CORE, KernelClass.GEMM_SIMT)
    products = device[is_among(timeline.kernel_class[device], classes)]
    return products if len(products) else device


def _joined_share(timeline: Timeline, triple: IntArray) -> float:
    """Waves of tiles that one product needs over those that three need."""
    units = max((device.multiprocessors for device in timeline.trace.info.devices), default=0)
    tiles: list[int] = []
    for row in triple.tolist():
        name = timeline.trace.name_of(row)
        data, weight = _sizes(name, timeline.trace.inputs_of(row))
        made = weight[0] if name == "aten::linear" else weight[1]
        tiles.append(ceil(prod(data[:-1]) / _TILE) * ceil(made / _TILE))
    if not units:
        return 1.0
    return max(ceil(sum(tiles) / units) / sum(ceil(count / units) for count in tiles), _LEAST_SHARE)


PATTERN = Pattern(
    code="TAP603",
    slug="split-qkv",
    title="Queries, keys and values projected apart",
    fix=FixKind.UNSAFE,
    find=find,
    needs=("shapes",),
    group="attention_bottleneck",
)
