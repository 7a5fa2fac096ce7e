from __future__ import annotations

import ast
from pathlib import Path

from torchtraceap.codemap.fixes.loaders import is_loader
from torchtraceap.codemap.fixes.outline import outline
from torchtraceap.codemap.fixes.resolve import Resolver, Value
from torchtraceap.codemap.fixes.settings import argument, constants
from torchtraceap.codemap.project import open_workspace

from . import pairs


def looked_up(files: dict[str, str], path: str, fragment: str, callers: tuple[str, ...] = ()) -> list[str]:
    """`path:line` of the loaders that the loop on the line with `fragment` may iterate."""
    workspace = open_workspace(Path("none"), files)
    file = outline(workspace.file(path))
    assert file is not None
    line = pairs.line_of(files[path], fragment)
    loop = next(node for node in file.statements if node.lineno == line)
    assert isinstance(loop, ast.For)
    stack = [pairs.location(path, files[path], pairs.line_of(files[path], one)) for one in callers]
    found = Resolver(workspace, stack).find(Value(file, loop.iter), is_loader)
    return [f"{value.outline.path}:{value.node.lineno}" for value in found]


_DATA = """from torch.utils.data import DataLoader

def build_loaders(cfg):
    train = DataLoader(cfg.train, batch_size=8)
    val = DataLoader(cfg.val)
    return train, val
"""


def test_a_helper_of_another_file_gives_the_item_that_is_unpacked():
    files = {
        "pkg/__init__.py": "",
        "pkg/data.py": _DATA,
        "pkg/engine.py": "def epoch(loader):\n    for x in loader:\n        x\n",
        "train.py": "from pkg.data import build_loaders\nfrom pkg import engine\n\n"
        "train, val = build_loaders(c)\nengine.epoch(train)\n",
    }
    assert looked_up(files, "pkg/engine.py", "for x in loader") == ["pkg/data.py:4"]


def test_the_caller_on_the_stack_decides_between_two():
    files = {
        "data.py": _DATA,
        "main.py": (
            "from data import build_loaders\n\ndef run(loader):\n    for x in loader:\n        x\n\n"
            "a, b = build_loaders(1)\nrun(a)\nrun(b)  # second\n"
        ),
    }
    assert looked_up(files, "main.py", "for x") == ["data.py:4", "data.py:5"]
    assert looked_up(files, "main.py", "for x", ("run(b)",)) == ["data.py:5"]


def test_attributes_properties_and_base_classes():
    text = (
        "from torch.utils.data import DataLoader\n\n"
        "class Base:\n    def __init__(self, d):\n        self.loaders = {'train': DataLoader(d), 'val': None}\n\n"
        "    @property\n    def train_loader(self):\n        return self.loaders['train']\n\n"
        "class Trainer(Base):\n    def fit(self):\n        for x in self.train_loader:\n            x\n\n"
        "for y in Trainer(1).train_loader:\n    y\n"
    )
    assert looked_up({"m.py": text}, "m.py", "for x in") == ["m.py:5"]
    assert looked_up({"m.py": text}, "m.py", "for y in") == ["m.py:5"]


def test_a_registered_buffer_is_an_attribute():
    text = (
        "from torch.utils.data import DataLoader\n\n"
        "class Net:\n    def __init__(self, d):\n"
        "        self.register_buffer('held', DataLoader(d), persistent=False)\n"
        "        self.register_buffer('other', DataLoader(d, 2))\n        self.register_buffer('none')\n\n"
        "    def fit(self):\n        for x in self.held:\n            x\n"
    )
    assert looked_up({"m.py": text}, "m.py", "for x in") == ["m.py:5"]


def test_what_is_appended_to_a_list_may_be_any_of_its_items():
    files = {
        "main.py": (
            "from torch.utils.data import DataLoader\n\n"
            "class Run:\n    def __init__(self, sets):\n        self.kept, found = [], []\n"
            "        for one in sets:\n            self.kept.append(DataLoader(one))\n"
            "            found.append(DataLoader(one, 2))\n        self.rest = tuple(found)\n\n"
            "    def step(self):\n        for kept in self.kept:\n            for x in kept:\n                x\n"
            "        for rest in self.rest:\n            for y in rest:\n                y\n"
        )
    }
    assert looked_up(files, "main.py", "for x") == ["main.py:7"]
    assert looked_up(files, "main.py", "for y") == ["main.py:8"]


def test_names_that_define_each_other_end():
    text = "def f(x):\n    x = x.g().h()\n    x = f(x)\n    for y in x:\n        y\n"
    assert looked_up({"m.py": text}, "m.py", "for y in") == []


def test_an_argument_is_found_in_unpacked_dicts_and_its_number_in_the_settings():
    text = (
        "from dataclasses import dataclass\n\n@dataclass\nclass Config:\n    workers: int = 0\n\n"
        "def main(cfg: Config):\n    options = {'num_workers': cfg.workers}\n    load(1, **options)\n"
    )
    workspace = open_workspace(Path("none"), {"m.py": text})
    file = outline(workspace.file("m.py"))
    assert file is not None
    resolver = Resolver(workspace)
    held = argument(resolver, Value(file, file.calls("load")[0]), "num_workers")
    assert held.value is not None and file.segment(held.value.node) == "cfg.workers"
    assert [one.node.lineno for one in constants(resolver, held.value)] == [5]
    assert argument(resolver, Value(file, file.calls("load")[0]), "other").value is None


def test_a_variable_called_like_a_file_is_no_module():
    files = {
        "data.py": (
            "from torch.utils.data import DataLoader\n\nclass Data:\n    def batches(self):\n"
            "        return DataLoader(self.train)\n"
        ),
        "main.py": (
            "from data import Data\n\ndef fit(data):\n    for x in data.batches():\n        x\n\nfit(Data())\n"
        ),
    }
    assert looked_up(files, "main.py", "for x in") == ["data.py:5"]


def test_a_value_that_is_its_own_attribute_ends():
    """`mask = mask.inner`, `mask = mask[0]`, two values that are each other's: nobody is asked for ever."""
    lines = ("mask = mask.inner", "other = mask.a.b", "mask = other.c", "mask = mask[0]", "return mask.last")
    text = "def f(mask, other):\n" + "".join(f"    {line}\n" for line in lines)
    workspace = open_workspace(Path("none"), {"main.py": text})
    file = outline(workspace.file("main.py"))
    assert file is not None
    returned = next(node for node in file.statements if isinstance(node, ast.Return))
    assert returned.value is not None
    assert Resolver(workspace).find(Value(file, returned.value), lambda _: False) == []
