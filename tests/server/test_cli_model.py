"""`torchtraceap model`."""

import json
from time import process_time

import pytest

from .cli import LEAVES, TRACE, start, torchtraceap

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, depth={depth}):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(depth))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)


model = Net()
"""


@pytest.fixture
def net(tmp_path):
    def write(depth=3):
        (tmp_path / "net.py").write_text(NET.format(depth=depth), "utf-8")
        return tmp_path

    return write


def lines(result):
    return [line.split() for line in result.stdout.splitlines()]


def test_the_tree_of_the_source_is_printed(net):
    result = torchtraceap("model", "--source", net(), "--input", "6x4")
    assert result.exit_code == 0
    assert result.stdout.startswith("Net  net.py:18  70 parameters, 280 B with buffers\n")
    rows = lines(result)
    assert ["└", "head", "Linear", "10", "40", "B", "6x2", "net.py:10"] in rows
    assert ["│", "└", "0-2", "Linear", "x", "3", "60", "240", "B", "6x4", "net.py:9"] in rows


def test_all_folds_nothing(net):
    result = torchtraceap("model", "--source", net(), "--all")
    assert sum("Linear" in line for line in result.stdout.splitlines()) == 4


def test_without_an_input_it_says_how_to_give_one(net):
    assert "--input gives it" in torchtraceap("model", "--source", net()).stdout


def test_a_trace_gives_times(tmp_path):
    result = torchtraceap("model", "--source", LEAVES, "--trace", TRACE)
    assert result.exit_code == 0
    header = next(line for line in result.stdout.splitlines() if "parameters" in line and "module" in line)
    assert header.split() == ["module", "parameters", "size", "output", "ms/step", "step", "built", "at"]
    (row,) = [line for line in lines(result) if line[:2] == ["LeafCNN", "403"]]
    assert row[5:7] == ["16x8", "120"] or float(row[6]) > 0
    assert "src/train.py:27" in row


def test_json_has_the_same(net):
    result = torchtraceap("model", "--source", net(), "--input", "6,4", "--format", "json")
    (model,) = json.loads(result.stdout)["models"]
    root = model["root"]
    assert root["totals"] == {"parameters": 70, "trainable": 70, "bytes": 280, "is_whole": True}
    head = root["children"][1]
    assert head["path"] == "head"
    assert head["tensors"][0]["shape"] == [2, 4]
    assert head["built_at"] == {"path": "net.py", "line": 10, "qualname": "Net.__init__", "cell": None}
    assert head["outputs"] == [[6, 2]]
    assert head["us_per_step"] is None


def test_one_class_can_be_asked_for():
    result = torchtraceap("model", "--source", LEAVES, "--class", "LeafCNN")
    assert result.stdout.startswith("LeafCNN")
    assert "LeafViT" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "3x-1"], "no size such as 8x3x224x224"),
        (["--input", "9" * 40], "no size such as 8x3x224x224"),
        (["--trace", "nowhere.json"], "no such file or folder"),
        (["--trace", "net.py"], "net.py"),
        (["--class", "Other"], "no model of class Other in .: found are Net"),
    ],
)
def test_errors_are_clear(net, arguments, said, monkeypatch):
    monkeypatch.chdir(net())
    result = torchtraceap("model", *arguments)
    assert result.exit_code != 0
    assert said in result.stderr
    assert "Traceback" not in result.stderr + result.stdout


def test_a_folder_without_models_says_so(tmp_path):
    result = torchtraceap("model", "--source", tmp_path)
    assert result.exit_code != 0
    assert "no model in" in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("net.py", b"import torch\nclass Net(:\n", "line 2: invalid syntax"),
        ("net.py", b"import torch\nx = '\xff\xfc'\n", "cannot be decoded"),
        ("net.py", "import torch\n".encode("utf-16"), "cannot be decoded"),
        ("net.py", b"import torch\nx = 1\0\n", "null bytes"),
        ("net.ipynb", b'{"cells": [{"cell_type": 7}]}', "no notebook"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, content, why):
    (tmp_path / name).write_bytes(content)
    result = torchtraceap("model", "--source", tmp_path)
    assert result.exit_code != 0
    assert f"{name} could not be read: " in result.stderr
    assert why in result.stderr


def test_a_file_that_cannot_be_read_is_noted_beside_the_models(net):
    (net() / "other.py").write_text("import torch\nclass Net(:\n", "utf-8")
    result = torchtraceap("model", "--source", net())
    assert result.exit_code == 0
    assert "other.py could not be read: line 2" in result.stdout
    document = json.loads(torchtraceap("model", "--source", net(), "--format", "json").stdout)
    assert any("other.py could not be read" in note for note in document["models"][0]["notes"])


def test_nesting_beyond_what_is_followed_is_said(tmp_path):
    nested = f"{'nn.Sequential(' * 95}nn.Linear(3, 3){')' * 95}"
    (tmp_path / "net.py").write_text(f"from torch import nn\nm = {nested}\n", "utf-8")
    output = torchtraceap("model", "--source", tmp_path).stdout
    assert ">0 parameters" in output
    assert "what lies deeper is left out" in output


def test_errors_exit_with_2(tmp_path):
    process = start("model", "--source", tmp_path)
    process.communicate(timeout=60)
    assert process.returncode == 2


def test_what_the_source_does_not_tell_is_marked(tmp_path):
    text = NET.format(depth=3).replace("Net()", "Net(int(input()))")
    (tmp_path / "net.py").write_text(text.replace("depth=3", "depth"), "utf-8")
    output = torchtraceap("model", "--source", tmp_path).stdout
    assert "and more, their number is not known" in output
    assert ">30 parameters" in output


def test_names_from_the_source_cannot_steer_a_terminal(tmp_path):
    text = NET.format(depth=1).replace("self.head =", "self.add_module('a\\x1b[2Jb', nn.ReLU()); self.head =")
    (tmp_path / "net.py").write_text(text, "utf-8")
    output = torchtraceap("model", "--source", tmp_path).stdout
    assert "\x1b" not in output
    assert "a␛[2Jb" in output


def test_a_tree_of_a_thousand_modules_is_quick(net):
    began = process_time()
    result = torchtraceap("model", "--source", net(1000), "--input", "6x4")
    assert process_time() - began < 5.0
    assert "0-999 Linear x 1000" in result.stdout
