"""What an expression computes is told by its values, however it is written."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchtraceap.codemap.fixes.formulas import Layout, Match, recognise
from torchtraceap.codemap.fixes.outline import outline
from torchtraceap.codemap.fixes.resolve import Resolver, Value
from torchtraceap.codemap.fixes.straight import Block
from torchtraceap.codemap.project import open_workspace

HEAD = "import math\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\nSQRT_HALF = 0.5 ** 0.5\n\n"


def computed(*lines: str) -> Match | None:
    """The formula of the last line's expression, in a function of the lines."""
    text = HEAD + "def f(x, w, b, eps):\n" + "".join(f"    {line}\n" for line in lines)
    workspace = open_workspace(Path("none"), {"m.py": text})
    file = outline(workspace.file("m.py"))
    assert file is not None
    function = next(node for node in file.tree.body if isinstance(node, ast.FunctionDef))
    last = function.body[-1]
    assert isinstance(last, ast.Return) and last.value is not None
    return recognise(Resolver(workspace), Value(file, last.value), Block(file, function.body))


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        ("gelu", ["return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))"]),
        ("gelu", ["return x * 0.5 * (1.0 + (x * SQRT_HALF).erf())"]),
        ("gelu", ["return x / 2 * (1 + torch.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))"]),
        (
            "gelu",
            [
                "cube = x * x * x",
                "t = torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * cube))",
                "return 0.5 * x * (1 + t)",
            ],
        ),
        ("silu", ["return x.sigmoid() * x"]),
        ("silu", ["return x / (1 + torch.exp(-x))"]),
        ("mish", ["return torch.mul(x, F.softplus(x).tanh())"]),
        ("hardswish", ["return x * torch.clamp(x + 3, 0, 6) / 6"]),
        ("hardswish", ["return x * F.hardtanh(x + 3, 0.0, 6.0) / 6.0"]),
        ("hardsigmoid", ["return F.relu6(x + 3) * (1 / 6)"]),
        ("softmax", ["e = torch.exp(x - torch.amax(x, dim=-1, keepdim=True))", "return e / e.sum(-1, keepdim=True)"]),
        (
            "layer_norm",
            ["m = x.mean(-1, keepdim=True)", "return (x - m) / (x.var(-1, keepdim=True, unbiased=False) + eps).sqrt()"],
        ),
        (
            "layer_norm",
            ["x = x - x.mean(dim=-1, keepdim=True)", "return w * x * (x.square().mean(-1, True) + eps) ** -0.5 + b"],
        ),
        ("rms_norm", ["return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w"]),
    ],
)
def test_writings_of_one_formula(function: str, lines: list[str]):
    match = computed(*lines)
    assert match is not None
    assert match.formula.function == f"torch.nn.functional.{function}"
    assert isinstance(match.tensor, ast.Name) and match.tensor.id == "x"


@pytest.mark.parametrize(
    "lines",
    [
        ["return x * torch.sigmoid(1.702 * x)"],
        ["return x * torch.sigmoid(b)"],
        ["return 0.5 * x * (1 + torch.tanh(x))"],
        ["return x * torch.clamp(x + 3, 0, 6) / 5"],
        ["return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)"],
        ["return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + eps)"],
        ["return (x - x.mean(-1)) / torch.sqrt(x.var(-1, unbiased=False) + eps)"],
        ["return torch.exp(x) / torch.exp(x).sum()"],
        ["return x * w + b"],
        ["return x * torch.sigmoid(F.dropout(x))"],
        ["y = x.sigmoid()", "x = x + 1", "return x * y"],
    ],
)
def test_near_misses(lines: list[str]):
    assert computed(*lines) is None


def test_names_stand_for_what_was_assigned_to_them():
    match = computed("y = x.sigmoid()", "z = x * y", "return z")
    assert match is not None and match.formula.function.endswith("silu")
    assert [ast.unparse(one) for one in match.through] == ["y = x.sigmoid()", "z = x * y"]


def test_parameters_out_of_sight_are_only_assumed_to_be_vectors():
    match = computed("return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * w")
    assert match is not None and match.layout is Layout.ASSUMED
    assert isinstance(match.epsilon, ast.Name) and match.epsilon.id == "eps"


def test_conversions_and_writes_are_told():
    pure, cast = computed("return x * x.sigmoid()"), computed("return x * x.float().sigmoid()")
    written = computed("return x.mul_(x.sigmoid())")
    assert pure is not None and cast is not None and written is not None
    assert (pure.is_pure, cast.is_pure, written.is_pure) == (True, False, False)
