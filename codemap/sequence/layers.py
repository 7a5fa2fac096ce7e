"""What modules show as when they are called: the workspace's by what their `forward` does, torch's by name."""

from __future__ import annotations

from collections.abc import Sequence

from ..automaton import NEVER
from ..building.classes import find
from ..building.layers import layer_name
from ..building.signatures import Arguments
from ..building.values import MORE, BoundMethod, Frame, FunctionValue, ModuleValue, TensorValue, Unknown, Value
from .layer_inputs import layer_inputs
from .program import Inputs
from .shows import Shown, fast_path, shown_by_layer
from .walker import Walker


def walk_module(walker: Walker, module: ModuleValue, given: Arguments, frame: Frame) -> Value:
    """A module called: its `forward` of the workspace, or what its library shows as."""
    forward = find(walker, module.cls, "forward") if module.cls is not None else None
    name = module.cls.name if module.cls is not None else module.dotted.rpartition(".")[2]
    kept = walker.within, walker.is_in_layer
    walker.within, walker.is_in_layer = walker.within.in_module(name), not isinstance(forward, FunctionValue)
    try:
        if isinstance(forward, FunctionValue):
            return walker.call(BoundMethod(forward, module), given, walker.node, frame)
        return walk_layer(walker, module, given, frame)
    finally:
        walker.within, walker.is_in_layer = kept


def walk_layer(walker: Walker, module: ModuleValue, given: Arguments, frame: Frame) -> Value:
    """A library's module called."""
    name = layer_name(module.dotted) or module.dotted.rpartition(".")[2]
    if name == "Sequential":
        value = given.args[0] if given.args else Unknown("an input")
        items = module.items()
        if MORE in items and walker.at:
            walker.join_nodes([walker.program.add(None, walker.at)])
        head = walker.at
        for item in items:
            if item is not MORE:
                value = walker.call(item, Arguments([value]), walker.node, frame)
            elif head:
                # How many follow is not known: of the same kinds, most likely.
                walker.program.link(walker.at, head[0])
                walker.at = [*head, *walker.at]
        return value
    if name in ("DataParallel", "DistributedDataParallel") and "module" in module.attributes:
        walker.note(["broadcast_tensors", "scatter", "_broadcast_coalesced"], 0.0, 0.1)
        return walker.call(module.attributes["module"], given, walker.node, frame)
    if name in ("TransformerEncoder", "TransformerDecoder"):
        return _walk_stack(walker, module, given, frame)
    shown = shown_by_layer(name)
    if shown is None or module.is_opaque:
        walker.wildcard(0.25, 1.0)
        return Unknown("what a library's module gives")
    if module.layer_arguments.get("padding_mode", "zeros") == "zeros":
        shown = tuple(one for one in shown if one.names != ("pad",) or not one.is_optional)
    start = walker.at
    inputs = layer_inputs(module, name)
    note_shown(walker, shown, 1.0, inputs)
    if alternative := fast_path(name):
        end, walker.at = walker.at, start
        note_shown(walker, alternative, 1.0, None)
        walker.join_nodes([*end, *walker.at])
    if name in ("MultiheadAttention", "LSTM", "GRU", "RNN", "LSTMCell"):
        return (TensorValue(None, ""), Unknown("the second result of a layer"))
    return given.args[0] if name == "Identity" and given.args else TensorValue(None, "")


def _walk_stack(walker: Walker, module: ModuleValue, given: Arguments, frame: Frame) -> Value:
    layers = module.attributes.get("layers")
    items = layers.items() if isinstance(layers, ModuleValue) else []
    for item in items:
        if isinstance(item, ModuleValue):
            walker.call(item, given, walker.node, frame)
    norm = module.attributes.get("norm")
    if isinstance(norm, ModuleValue):
        walker.call(norm, given, walker.node, frame)
    if not items:
        walker.wildcard(0.25, 1.0)
    return TensorValue(None, "")


def note_shown(walker: Walker, shown: Sequence[Shown], skip: float, inputs: Inputs | None) -> None:
    """Note the operators of a call, one after another. `inputs` are those of the last that must come."""
    main = next((one for one in reversed(shown) if not one.is_optional), None)
    for one in shown:
        walker.note(
            one.names,
            0.0 if one.is_optional else skip,
            0.02 if one.repeats else NEVER,
            inputs=inputs if one is main else None,
        )
