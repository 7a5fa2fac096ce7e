"""The table of `torch.nn`'s layers, against torch itself."""

from __future__ import annotations

import ast
import inspect

import pytest

from torchtraceap.codemap.building.layers import LAYERS, bind_layer
from torchtraceap.codemap.building.signatures import Arguments, defaults_of, signature_of
from torchtraceap.codemap.building.values import ModuleValue

from .programs import evaluated_shapes, real_shapes, value_of

torch = pytest.importorskip("torch")

CALLS = [
    "Conv1d(4, 8, 3)",
    "Conv2d(3, 64, 7, stride=2, padding=3, bias=False)",
    "Conv2d(8, 16, (3, 5), groups=4)",
    "Conv3d(2, 4, kernel_size=(1, 3, 3))",
    "ConvTranspose1d(4, 6, 2)",
    "ConvTranspose2d(8, 4, 2, 2, groups=2)",
    "ConvTranspose2d(8, 4, kernel_size=(2, 3), bias=False)",
    "ConvTranspose3d(4, 2, 3)",
    "Linear(10, 4)",
    "Linear(in_features=10, out_features=4, bias=False)",
    "Bilinear(3, 4, 5)",
    "Bilinear(3, 4, 5, bias=False)",
    "BatchNorm1d(6)",
    "BatchNorm2d(6, affine=False)",
    "BatchNorm3d(6, track_running_stats=False)",
    "SyncBatchNorm(6)",
    "InstanceNorm2d(6)",
    "InstanceNorm1d(6, affine=True)",
    "InstanceNorm2d(6, track_running_stats=True)",
    "LayerNorm(12)",
    "LayerNorm((3, 4))",
    "LayerNorm([3, 4], elementwise_affine=False)",
    "LayerNorm(12, bias=False)",
    "RMSNorm(12)",
    "RMSNorm((2, 3), elementwise_affine=False)",
    "GroupNorm(2, 8)",
    "GroupNorm(2, 8, affine=False)",
    "LocalResponseNorm(2)",
    "Embedding(20, 6)",
    "Embedding(20, 6, padding_idx=0)",
    "EmbeddingBag(20, 6, mode='sum')",
    "PReLU()",
    "PReLU(8)",
    "MultiheadAttention(16, 4)",
    "MultiheadAttention(16, 4, bias=False, batch_first=True)",
    "MultiheadAttention(16, 4, kdim=8, vdim=12)",
    "MultiheadAttention(16, 4, add_bias_kv=True)",
    "LSTM(5, 7)",
    "LSTM(5, 7, 2, bidirectional=True)",
    "LSTM(5, 7, num_layers=2, proj_size=3)",
    "LSTM(5, 7, bias=False)",
    "GRU(5, 7, 3, batch_first=True)",
    "RNN(5, 7, nonlinearity='relu')",
    "RNN(5, 7, 2, 'tanh', True, False, 0.0, True)",
    "LSTMCell(5, 7)",
    "GRUCell(5, 7, bias=False)",
    "RNNCell(5, 7)",
    "TransformerEncoderLayer(16, 4)",
    "TransformerEncoderLayer(d_model=16, nhead=4, dim_feedforward=24, norm_first=True)",
    "TransformerEncoderLayer(16, 4, 24, bias=False)",
    "TransformerDecoderLayer(16, 4, 32)",
    "TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24), 3)",
    "TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24), num_layers=2, norm=nn.LayerNorm(16))",
    "TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 24), 2)",
    "Transformer(16, 4, 2, 1, 32)",
    "Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1)))",
    "ModuleList([nn.Linear(2, 2) for _ in range(3)])",
    "ModuleDict([['a', nn.Linear(2, 2)], ['b', nn.Identity()]])",
    "ParameterList([nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(4))])",
    "ReLU(inplace=True)",
    "Hardtanh(0, 6)",
    "Softmax(dim=-1)",
    "Dropout2d(0.3)",
    "MaxPool2d(3, stride=2, padding=1, ceil_mode=True)",
    "AdaptiveAvgPool2d((1, 1))",
    "Upsample(scale_factor=2, mode='bilinear')",
    "PixelShuffle(2)",
    "Flatten()",
    "Unflatten(1, (2, 3))",
    "ZeroPad2d(1)",
]


@pytest.mark.parametrize("call", CALLS)
def test_own_parameters_and_parts_are_torchs(tmp_path, call):
    evaluated = value_of(tmp_path, f"import torch\nfrom torch import nn\nvalue = nn.{call}\n")
    assert isinstance(evaluated, ModuleValue)
    made = eval(f"nn.{call}", {"nn": torch.nn, "torch": torch})
    expected = real_shapes(made)
    found = evaluated_shapes(evaluated)
    assert found == expected
    assert list(found) == list(expected)


def test_dtypes_are_torchs(tmp_path):
    text = "import torch\nfrom torch import nn\nvalue = nn.BatchNorm2d(3, dtype=torch.float16).to(torch.float64)\n"
    evaluated = value_of(tmp_path, text)
    assert isinstance(evaluated, ModuleValue)
    real = torch.nn.BatchNorm2d(3, dtype=torch.float16).to(torch.float64)
    expected = {name: str(value.dtype).removeprefix("torch.") for name, value in real.state_dict().items()}
    assert {name: tensor.dtype for name, tensor in evaluated.tensors()} == expected


def own_parameters(cls):
    return list(inspect.signature(cls.__init__).parameters.values())[1:]


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_parameters_and_defaults_are_torchs(name):
    cls = getattr(torch.nn, name, None)
    if cls is None or name in ("RNN", "LSTM", "GRU", "Module", "Identity"):
        pytest.skip("takes any arguments, or is not public")
    tree = ast.parse(f"def f({LAYERS[name]}): ...").body[0]
    assert isinstance(tree, ast.FunctionDef)
    signature = signature_of(tree.args)
    written = dict(defaults_of(tree.args))
    real = {one.name: one for one in own_parameters(cls)}
    if any(one.kind is one.VAR_POSITIONAL for one in real.values()) and not LAYERS[name].startswith("*"):
        pytest.skip("torch's signature is open")
    for parameter in (*signature.positional, *signature.keyword_only):
        if parameter in ("bias",) and parameter not in real:
            continue  # newer than the torch at hand
        assert parameter in real
        default = real[parameter].default
        if parameter in written and not callable(default):
            assert ast.literal_eval(written[parameter]) == default
    known = [one for one in real if one in signature.positional]
    assert list(signature.positional)[: len(known)] == known


def test_arguments_are_bound_by_position_and_name():
    bound = bind_layer("Conv2d", Arguments([3, 8], {"kernel_size": 5, "groups": 2}))
    assert (bound["in_channels"], bound["kernel_size"], bound["groups"], bound["bias"]) == (3, 5, 2, True)
