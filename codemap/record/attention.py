"""`--attention`: what each attention layer looks at, and what each head is worth, written into the trace.

Measured in a few steps of their own, before any profiler runs; in the full steps an empty range with the figures
follows each layer, which is where the analyzer looks for them (`analyzer/timeline/attention_stats.py`). The measures
and their sources are in attention_measures.py. Imported in the recorded process only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks

from ...analyzer.timeline.attention_stats import text_of
from ...analyzer.trace.recording import Recording
from .attention_measures import (
    SAMPLED_SEQUENCES,
    Tally,
    by_heads,
    gradient_importance,
    head_norms,
    sampled,
    valid_share,
    weights_of,
)
from .attention_watch import Attended, Observer, Watch
from .extras import ExtraContext
from .hooks import has_compiled
from .options import RecordOptions

OWN_STEPS = 4
MOST_GRIDS = 16
HEAD_COUNTS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads", "nheads")
"""What attention modules call their number of heads."""


@dataclass(slots=True)
class _Layer:
    module: nn.Module
    name: str
    tally: Tally = field(default_factory=Tally)
    most_attended: int = 0
    """Attentions in one call of the module."""


@dataclass(frozen=True, slots=True)
class _Unprojected:
    """Head outputs whose projection is still to come."""

    tally: Tally
    output: Tensor


class AttentionExtra(Observer):
    """The part that measures attention."""

    title = "--attention"

    def __init__(self, options: RecordOptions) -> None:
        self.own_steps = OWN_STEPS
        self._full_steps = options.full
        self._watch = Watch(self)
        self._layers: dict[int, _Layer] = {}
        self._names: Mapping[int, str] = {}
        self._texts: dict[int, str] = {}
        self._grids: list[tuple[int, int]] = []
        self._unprojected: _Unprojected | None = None
        self._writing: Any = None
        self._is_compiled = False
        self._outside = False

    # The run

    def start(self, context: ExtraContext) -> None:
        """Begin to watch, unless the model is compiled: hooks would make it compile again."""
        self._names = context.paths
        modules = (module for root in context.roots.values() for module in root.modules())
        self._is_compiled = has_compiled() or any(map(_is_compiled, modules))
        if self._is_compiled:
            return
        self._watch.begin()

    def stop(self) -> None:
        """End watching, and write what was found behind each layer from now on."""
        self._watch.end()
        self._settle()
        self._texts = {id(layer.module): text for layer in self._layers.values() if (text := self._text(layer))}
        if self._texts:
            self._writing = hooks.register_module_forward_hook(self._write)

    def on_full_step(self, index: int) -> None:
        """After the last of the full steps nothing is written any more."""
        if index + 1 >= self._full_steps:
            self._end_writing()

    def finish(self, recording: Recording, trace: Path) -> Recording:
        """Add what could not be measured, and why."""
        self._end_writing()
        notes = list(self._problems())
        if not self._layers and not notes:
            notes = ["no attention was found in the model"]
        return msgspec.structs.replace(
            recording, notes=(*recording.notes, *(f"{self.title}: {note}" for note in notes))
        )

    def _problems(self) -> Iterator[str]:
        if self._is_compiled:
            yield "the model is compiled; attention is measured in uncompiled models only"
        if self._watch.failure:
            yield f"looking at an attention failed: {self._watch.failure}"
        if self._outside:
            yield "attention outside of any module was left out"
        for layer in self._layers.values():
            if layer.most_attended > 1:
                yield f"{layer.name} attends {layer.most_attended} times a call; it was left out"

    def tallies(self) -> Iterator[tuple[str, Tally]]:
        """What was summed up, by the path of the layer."""
        for layer in self._layers.values():
            yield layer.name, layer.tally

    def _end_writing(self) -> None:
        if self._writing is not None:
            self._writing.remove()
            self._writing = None

    def _write(self, module: nn.Module, _args: Any, _output: Any) -> None:
        if (text := self._texts.get(id(module))) is not None:
            with torch.profiler.record_function(text):
                pass

    def _text(self, layer: _Layer) -> str:
        statistics = layer.tally.statistics(layer.name)
        is_telling = layer.most_attended == 1 and (statistics.importance or statistics.reach)
        return text_of(statistics) if is_telling else ""

    # What the watch tells

    def attended(self, call: Attended) -> None:
        """Measure one attention."""
        self._settle()
        module = call.owner.module
        if module is None:
            self._outside = True
            return
        layer = self._layer(module)
        layer.most_attended = max(layer.most_attended, call.owner.attended + 1)
        heads = _heads_of(module)
        output = by_heads(_in_order(call.output.detach(), call.order), heads)
        if output is None:
            return
        if output.shape[1] > 1:
            self._measure_heads(layer.tally, call, output, heads)
        self._measure_weights(layer.tally, call, output.shape[2], heads)

    def projected(self, weight: Tensor) -> None:
        """The first linear layer behind an attention projects what the heads gave, if it takes as much."""
        if self._unprojected is not None:
            _, heads, _, width = self._unprojected.output.shape
            self._settle(weight if weight.shape[-1] == heads * width else None)

    def mapped(self, rows: int, columns: int) -> None:
        """Remember the size of a feature map: its pixels may become tokens."""
        if (rows, columns) not in self._grids and len(self._grids) < MOST_GRIDS:
            self._grids.append((rows, columns))

    def _measure_heads(self, tally: Tally, call: Attended, output: Tensor, heads: int) -> None:
        some = output[:SAMPLED_SEQUENCES].index_select(2, sampled(output.shape[2], output.device))
        if call.projection is not None:
            tally.add_norm(head_norms(some, call.projection))
        else:
            self._unprojected = _Unprojected(tally, some)
        if call.output.requires_grad:

            def seen(gradient: Tensor) -> None:
                with torch.no_grad():
                    if (by_head := by_heads(_in_order(gradient, call.order), heads)) is not None:
                        tally.add_gradient(gradient_importance(output, by_head))

            call.output.register_hook(seen)

    def _measure_weights(self, tally: Tally, call: Attended, tokens: int, heads: int) -> None:
        queries = sampled(tokens, call.output.device)
        if call.weights is not None:
            whole = by_heads(call.weights.detach(), heads)
            if whole is None:
                return
            weights = whole[:SAMPLED_SEQUENCES].index_select(2, queries).float()
            seen = (weights > 0).any(dim=2).any(dim=1).float().mean()
            if bool(seen < 1):  # keys that no query gives any weight are masked
                tally.add_valid(seen)
        elif call.query is not None and call.key is not None:
            query, key = by_heads(call.query.detach(), heads), by_heads(call.key.detach(), heads)
            if query is None or key is None:
                return
            mask = call.mask.detach() if call.mask is not None else None
            with torch.autocast(query.device.type, enabled=False):
                weights = weights_of(query, key, queries, mask, call.is_causal, call.scale)
            if mask is not None and (share := valid_share(mask, query.shape[0])) is not None:
                tally.add_valid(share)
        else:
            return
        tally.add_weights(weights, queries, tokens, self._grids)

    def _settle(self, projection: Tensor | None = None) -> None:
        """Measure the heads whose projection has come, or will not."""
        if self._unprojected is not None:
            with torch.no_grad():
                self._unprojected.tally.add_norm(head_norms(self._unprojected.output, projection))
            self._unprojected = None

    def _layer(self, module: nn.Module) -> _Layer:
        if id(module) not in self._layers:
            name = self._names.get(id(module)) or type(module).__name__
            self._layers[id(module)] = _Layer(module, name)
        return self._layers[id(module)]


def _in_order(tensor: Tensor, order: tuple[int, ...]) -> Tensor:
    return tensor.permute(order) if order else tensor


def _heads_of(module: nn.Module) -> int:
    """What a module says of the number of its heads; 0 if nothing."""
    counts = (getattr(module, name, None) for name in HEAD_COUNTS)
    return next((count for count in counts if isinstance(count, int) and not isinstance(count, bool)), 0)


def _is_compiled(module: nn.Module) -> bool:
    return getattr(module, "_compiled_call_impl", None) is not None or type(module).__name__ == "OptimizedModule"
