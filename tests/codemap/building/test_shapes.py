"""Shapes of results: of layers, functions and methods of tensors, against torch itself."""

from __future__ import annotations

import ast

import pytest

from torchtraceap.codemap.building.forward import tensors_in
from torchtraceap.codemap.building.layer_shapes import layer_output
from torchtraceap.codemap.building.layers import LAYERS as TABLE
from torchtraceap.codemap.building.signatures import Arguments
from torchtraceap.codemap.building.values import TensorValue

from .programs import program_of

torch = pytest.importorskip("torch")

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
IMAGE = "torch.randn(2, 6, 13, 17)"
LAYERS = [
    "nn.Conv2d(6, 8, 3)",
    "nn.Conv2d(6, 8, (3, 5), stride=(2, 1), padding=(1, 2), dilation=(1, 2))",
    "nn.Conv2d(6, 8, 3, padding='same', dilation=2)",
    "nn.Conv2d(6, 8, 4, padding='valid')",
    "nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1)",
    "nn.ConvTranspose2d(6, 4, (2, 3), dilation=2)",
    "nn.MaxPool2d(3, 2, 1)",
    "nn.MaxPool2d(3, stride=2, ceil_mode=True)",
    "nn.MaxPool2d(2)",
    "nn.AvgPool2d((2, 3), padding=(1, 1))",
    "nn.AdaptiveAvgPool2d((None, 5))",
    "nn.AdaptiveMaxPool2d(4)",
    "nn.Upsample(scale_factor=2)",
    "nn.Upsample(scale_factor=(1.5, 2.0), mode='bilinear')",
    "nn.Upsample(size=(7, 9))",
    "nn.ZeroPad2d((1, 2, 3, 4))",
    "nn.ReflectionPad2d(2)",
    "nn.Flatten()",
    "nn.Flatten(2)",
    "nn.Unflatten(1, (2, 3))",
    "nn.Linear(17, 5)",
    "nn.GLU(1)",
    "nn.BatchNorm2d(6)",
    "nn.Softmax(1)",
    "nn.Identity()",
    "nn.Sequential(nn.Conv2d(6, 12, 1), nn.PixelShuffle(2))",
    "nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.PixelUnshuffle(2))",
]
EXPRESSIONS = [
    "F.interpolate(x, scale_factor=2)",
    "F.interpolate(x, size=(5, 6), mode='bilinear')",
    "F.pad(x, (1, 2))",
    "F.pad(x, (1, 2, 3, 4), value=0.0)",
    "F.max_pool2d(x, 2)",
    "F.avg_pool2d(x, 3, 2, 1)",
    "F.adaptive_avg_pool2d(x, 1)",
    "F.conv2d(x, torch.randn(4, 3, 3, 3), stride=2, groups=2)",
    "F.linear(x, torch.randn(4, 17))",
    "F.scaled_dot_product_attention(x, x, x)",
    "F.softmax(x, dim=-1)",
    "x.flatten(1, 2)",
    "x.reshape(2, -1)",
    "x.view(x.shape[0], 2, 3, -1)",
    "x.permute(0, 2, 3, 1)",
    "x.transpose(1, -1)",
    "x.mean((2, 3))",
    "x.mean(dim=1, keepdim=True)",
    "x.sum(-1)",
    "x.max(dim=1)",
    "x.amax(dim=(-2, -1))",
    "x.chunk(3, dim=1)",
    "x.chunk(4, dim=1)",
    "x.split(4, dim=1)",
    "x.split([1, 2, 3], dim=1)",
    "x.unbind(1)",
    "x.unsqueeze(0)",
    "x.unsqueeze(-1)",
    "x[:, :1].squeeze(1)",
    "x[0]",
    "x[:, 1:4, ::2, -3:]",
    "x[..., None]",
    "x[:, [0, 2, 4]]",
    "x[None, :, 0]",
    "x[:, :, torch.arange(5)]",
    "x.expand(3, 2, 6, 13, 17)",
    "x[:, :1].expand(-1, 5, -1, -1)",
    "x.repeat(2, 1, 1, 3)",
    "torch.cat([x, x[:, :2]], dim=1)",
    "torch.cat((x, x), -1)",
    "torch.stack([x, x, x], dim=2)",
    "torch.einsum('bchw,cd->bdhw', x, torch.randn(6, 9))",
    "x @ x.transpose(-2, -1)",
    "x + x.mean(1, keepdim=True)",
    "x[:, :, 0] * torch.ones(17)",
    "torch.where(x > 0, x, torch.zeros(1))",
    "torch.meshgrid(torch.arange(3), torch.arange(4), indexing='ij')",
    "torch.meshgrid(torch.arange(3), torch.arange(4), indexing='xy')",
    "torch.zeros_like(x)",
    "torch.arange(3, 20, 4)",
    "torch.linspace(0, 1, 7)",
    "torch.tensor([[1, 2], [3, 4], [5, 6]])",
    "torch.eye(4, 3)",
    "x.topk(3, dim=-1)",
    "x.size()",
    "nn.Embedding(9, 5)(torch.ones(2, 3, dtype=torch.long))",
    "nn.LSTM(17, 4, bidirectional=True, batch_first=True)(x[:, 0])[0]",
    "nn.MultiheadAttention(17, 1, batch_first=True)(x[:, 0], x[:, 0], x[:, 0])[0]",
    "x.unflatten(1, (2, -1))",
    "x.new_zeros(3, 4)",
    "x.norm(dim=1)",
    "x.numel()",
]


def shapes_of(value):
    if isinstance(value, torch.Tensor):
        return [tuple(value.shape)]
    if isinstance(value, torch.Size):
        return [tuple(value)]
    if isinstance(value, (tuple, list)):
        return [shape for one in value for shape in shapes_of(one)]
    return [value]


def evaluated(tmp_path, expression):
    program = program_of(tmp_path, main=f"{HEAD}x = {IMAGE}\n")
    program.machine.on_call = lambda module, given, _node, _frame: output_of(module, given)
    return program.machine.evaluate(ast.parse(expression, mode="eval").body, program.machine.file("main.py"))


def output_of(module, given):
    for part in module.items() if module.name == "Sequential" else [module]:
        given = Arguments([layer_output(part.name, part.layer_arguments, given)])
    return given.args[0]


@pytest.mark.parametrize("expression", [f"{one}(x)" for one in LAYERS] + EXPRESSIONS)
def test_a_shape_that_is_told_is_torchs(tmp_path, expression):
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    with torch.no_grad():
        names["x"] = eval(IMAGE, names)
        expected = shapes_of(eval(expression, names))
    found = evaluated(tmp_path, expression)
    assert ([tensor.shape for tensor in tensors_in([found])] or [found]) == expected


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_layer_whose_constructor_did_not_run_gives_what_is_not_known(name):
    image = TensorValue((2, 6, 13, 17))
    outputs = list(tensors_in([layer_output(name, {}, Arguments([image, image, image]))]))
    assert outputs
    if name in ("Conv2d", "MaxPool2d", "Upsample"):
        assert outputs[0].shape is not None and outputs[0].shape[0] == 2
        assert outputs[0].sizes is None


def test_sizes_that_are_not_known_stay_so(tmp_path):
    found = evaluated(tmp_path, "torch.zeros(2, unknown).flatten(1)")
    assert isinstance(found, TensorValue)
    assert found.sizes is None
    assert found.shape is not None and found.shape[0] == 2
