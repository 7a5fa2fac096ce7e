"""The parameters, buffers and modules that a layer of `torch.nn` makes for itself, from its constructor's arguments.

Checked in the tests against torch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .layers import axes_of
from .values import Kind, LibraryValue, TensorValue, Unknown, Value

Bound = Mapping[str, Value]
Tensors = dict[str, Value]
"""Name -> a tensor, or None for one that the layer goes without."""
DTYPES = {
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "double": "float64",
    "long": "int64",
    "int": "int32",
    "bool": "bool",
}
"""Name of a dtype, or of a method that converts to it -> the dtype that it is."""
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def own_tensors(name: str, bound: Bound) -> Tensors:
    """A layer's own parameters and buffers by name, in torch's order; None where it registers that it has none."""
    if name.startswith("Lazy"):
        return _lazy(name, bound)
    if name.startswith("Conv") and axes_of(name):
        return _convolution(name, bound)
    if "BatchNorm" in name or name.startswith("InstanceNorm"):
        return _batch_norm(bound)
    if name in _GATES:
        return _recurrent(name, bound)
    if name.removesuffix("Cell") in _GATES and name.endswith("Cell"):
        return _cell(name, bound)
    make = _BY_NAME.get(name)
    return make(bound) if make is not None else {}


def dtype_name(value: Value) -> str:
    """`float16` for `torch.half` and the like; torch's default for None; "" where it is not known."""
    if value is None:
        return "float32"
    if isinstance(value, LibraryValue) and value.dotted.startswith("torch."):
        return DTYPES.get(value.name, value.name)
    return ""


def repeated(value: Value, count: int) -> tuple[Value, ...]:
    """One number for each axis."""
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,) * count


def parameter(shape: tuple[Value, ...], bound: Bound) -> TensorValue:
    """A trainable parameter of the layer's dtype."""
    return TensorValue(shape, dtype_name(bound.get("dtype")), Kind.PARAMETER, is_trainable=True)


def _optional(has: Value, shape: tuple[Value, ...], bound: Bound) -> Value:
    """A parameter that the layer has if `has` is true."""
    made = parameter(shape, bound)
    if isinstance(has, Unknown):
        return Unknown(has.why, (made, None))
    return made if has else None


def _divided(value: Value, by: Value) -> Value:
    if type(value) is int and type(by) is int and by > 0:
        return value // by
    return Unknown("a size that is not known")


def _times(value: Value, by: Value) -> Value:
    return value * by if type(value) is int and type(by) is int else Unknown("a size that is not known")


def _convolution(name: str, bound: Bound) -> Tensors:
    inputs, outputs, groups = bound["in_channels"], bound["out_channels"], bound["groups"]
    first = (inputs, _divided(outputs, groups)) if "Transpose" in name else (outputs, _divided(inputs, groups))
    weight = parameter((*first, *repeated(bound["kernel_size"], axes_of(name))), bound)
    return {"weight": weight, "bias": _optional(bound["bias"], (outputs,), bound)}


def _lazy(name: str, bound: Bound) -> Tensors:
    if "BatchNorm" in name:
        return _batch_norm({**bound, "num_features": Unknown("set by the first input")})
    outputs = bound.get("out_channels", bound.get("out_features"))
    return {"weight": TensorValue(None, kind=Kind.PARAMETER), "bias": _optional(bound["bias"], (outputs,), bound)}


def _batch_norm(bound: Bound) -> Tensors:
    features = (bound["num_features"],)
    affine = bound["affine"]
    tensors: Tensors = {
        "weight": _optional(affine, features, bound),
        "bias": _optional(affine if bound.get("bias", True) is True else False, features, bound),
    }
    tracks = bound["track_running_stats"]
    dtype = dtype_name(bound.get("dtype"))
    buffers: Tensors = {
        "running_mean": TensorValue(features, dtype, Kind.BUFFER),
        "running_var": TensorValue(features, dtype, Kind.BUFFER),
        "num_batches_tracked": TensorValue((), "int64", Kind.BUFFER),
    }
    if isinstance(tracks, Unknown):
        buffers = {name: Unknown(tracks.why, (tensor, None)) for name, tensor in buffers.items()}
    return {**tensors, **(buffers if tracks else dict.fromkeys(buffers))}


def _linear(bound: Bound) -> Tensors:
    outputs = bound["out_features"]
    return {
        "weight": parameter((outputs, bound["in_features"]), bound),
        "bias": _optional(bound["bias"], (outputs,), bound),
    }


def _bilinear(bound: Bound) -> Tensors:
    outputs = bound["out_features"]
    return {
        "weight": parameter((outputs, bound["in1_features"], bound["in2_features"]), bound),
        "bias": _optional(bound["bias"], (outputs,), bound),
    }


def _layer_norm(bound: Bound) -> Tensors:
    shape = repeated(bound["normalized_shape"], 1)
    affine = bound["elementwise_affine"]
    has_bias = affine if "bias" not in bound or bound["bias"] is True else bound["bias"] if affine is True else False
    tensors: Tensors = {"weight": _optional(affine, shape, bound)}
    return {**tensors, "bias": _optional(has_bias, shape, bound)} if "bias" in bound else tensors


def _group_norm(bound: Bound) -> Tensors:
    shape = (bound["num_channels"],)
    return {
        "weight": _optional(bound["affine"], shape, bound),
        "bias": _optional(bound["affine"] if bound.get("bias", True) is True else False, shape, bound),
    }


def _embedding(bound: Bound) -> Tensors:
    return {"weight": parameter((bound["num_embeddings"], bound["embedding_dim"]), bound)}


def _attention(bound: Bound) -> Tensors:
    width = bound["embed_dim"]
    key = width if bound["kdim"] is None else bound["kdim"]
    value = width if bound["vdim"] is None else bound["vdim"]
    tensors: Tensors = {}
    if key == width and value == width:
        tensors["in_proj_weight"] = parameter((_times(width, 3), width), bound)
        tensors |= dict.fromkeys(("q_proj_weight", "k_proj_weight", "v_proj_weight"))
    else:
        tensors["q_proj_weight"] = parameter((width, width), bound)
        tensors["k_proj_weight"] = parameter((width, key), bound)
        tensors["v_proj_weight"] = parameter((width, value), bound)
        tensors["in_proj_weight"] = None
    tensors["in_proj_bias"] = _optional(bound["bias"], (_times(width, 3),), bound)
    tensors["bias_k"] = _optional(bound["add_bias_kv"], (1, 1, width), bound)
    tensors["bias_v"] = _optional(bound["add_bias_kv"], (1, 1, width), bound)
    return tensors


def _recurrent(name: str, bound: Bound) -> Tensors:
    """Layers and directions one after the other: `weight_ih_l0`, `weight_ih_l0_reverse`, ..."""
    hidden, projected = bound["hidden_size"], bound.get("proj_size", 0)
    count, both, bias = bound["num_layers"], bound["bidirectional"], bound["bias"]
    if type(count) is not int or not 0 < count <= 1000 or isinstance(both, Unknown) or isinstance(bias, Unknown):
        return {"weight_ih_l0": TensorValue(None, kind=Kind.PARAMETER, is_trainable=True)}
    gates = _times(hidden, _GATES[name])
    output = projected or hidden
    directions = ("", "_reverse") if both else ("",)
    tensors: Tensors = {}
    for layer in range(count):
        given = bound["input_size"] if layer == 0 else _times(output, len(directions))
        for suffix in (f"_l{layer}{direction}" for direction in directions):
            tensors[f"weight_ih{suffix}"] = parameter((gates, given), bound)
            tensors[f"weight_hh{suffix}"] = parameter((gates, output), bound)
            if bias:
                tensors[f"bias_ih{suffix}"] = parameter((gates,), bound)
                tensors[f"bias_hh{suffix}"] = parameter((gates,), bound)
            if projected:
                tensors[f"weight_hr{suffix}"] = parameter((projected, hidden), bound)
    return tensors


def _cell(name: str, bound: Bound) -> Tensors:
    gates = _times(bound["hidden_size"], _GATES[name.removesuffix("Cell")])
    return {
        "weight_ih": parameter((gates, bound["input_size"]), bound),
        "weight_hh": parameter((gates, bound["hidden_size"]), bound),
        "bias_ih": _optional(bound["bias"], (gates,), bound),
        "bias_hh": _optional(bound["bias"], (gates,), bound),
    }


def _prelu(bound: Bound) -> Tensors:
    return {"weight": parameter((bound["num_parameters"],), bound)}


_BY_NAME: Mapping[str, Callable[[Bound], Tensors]] = {
    "Linear": _linear,
    "NonDynamicallyQuantizableLinear": _linear,
    "Bilinear": _bilinear,
    "LayerNorm": _layer_norm,
    "RMSNorm": _layer_norm,
    "GroupNorm": _group_norm,
    "Embedding": _embedding,
    "EmbeddingBag": _embedding,
    "MultiheadAttention": _attention,
    "PReLU": _prelu,
}


Part = tuple[str, str, dict[str, Value]]
"""A module that a layer makes: attribute, layer, keyword arguments."""


def own_parts(name: str, bound: Bound) -> tuple[Part, ...]:
    """The modules that a layer of `torch.nn` makes for itself, containers of copies left out."""
    make = _PARTS.get(name)
    return make(bound) if make is not None else ()


def _factory(bound: Bound) -> dict[str, Value]:
    return {"device": bound.get("device"), "dtype": bound.get("dtype")}


def _attention_parts(bound: Bound) -> tuple[Part, ...]:
    width = bound["embed_dim"]
    linear: dict[str, Value] = {"in_features": width, "out_features": width, "bias": bound["bias"]}
    return (("out_proj", "NonDynamicallyQuantizableLinear", linear | _factory(bound)),)


def _attention_of(bound: Bound) -> dict[str, Value]:
    given = {name: bound[name] for name in ("dropout", "bias", "batch_first")}
    return {"embed_dim": bound["d_model"], "num_heads": bound["nhead"], **given, **_factory(bound)}


def _feedforward(bound: Bound) -> tuple[Part, ...]:
    width, inner, bias = bound["d_model"], bound["dim_feedforward"], bound["bias"]
    common = {"bias": bias, **_factory(bound)}
    return (
        ("linear1", "Linear", {"in_features": width, "out_features": inner, **common}),
        ("dropout", "Dropout", {"p": bound["dropout"]}),
        ("linear2", "Linear", {"in_features": inner, "out_features": width, **common}),
    )


def _norms(bound: Bound, count: int) -> tuple[Part, ...]:
    common = {"normalized_shape": bound["d_model"], "eps": bound["layer_norm_eps"], "bias": bound["bias"]}
    norms: list[Part] = [(f"norm{at}", "LayerNorm", common | _factory(bound)) for at in range(1, count + 1)]
    drops: list[Part] = [(f"dropout{at}", "Dropout", {"p": bound["dropout"]}) for at in range(1, count + 1)]
    return (*norms, *drops)


def _encoder_layer(bound: Bound) -> tuple[Part, ...]:
    return (("self_attn", "MultiheadAttention", _attention_of(bound)), *_feedforward(bound), *_norms(bound, 2))


def _decoder_layer(bound: Bound) -> tuple[Part, ...]:
    attention = _attention_of(bound)
    return (
        ("self_attn", "MultiheadAttention", attention),
        ("multihead_attn", "MultiheadAttention", attention),
        *_feedforward(bound),
        *_norms(bound, 3),
    )


_PARTS: Mapping[str, Callable[[Bound], tuple[Part, ...]]] = {
    "MultiheadAttention": _attention_parts,
    "TransformerEncoderLayer": _encoder_layer,
    "TransformerDecoderLayer": _decoder_layer,
}
