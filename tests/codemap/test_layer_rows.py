"""The layers of a recording that is damaged, merged or hostile."""

from __future__ import annotations

from torchtraceap.analyzer.trace.recording import RecordedModule
from torchtraceap.codemap.layer_rows import recorded_trees
from torchtraceap.codemap.modules import Module


def paths(module: Module) -> list[str]:
    return [module.path, *(path for child in module.children for path in paths(child))]


def modules(*names: str) -> list[RecordedModule]:
    return [RecordedModule(name, "Block") for name in names]


def test_what_is_named_twice_counts_once_however_deep():
    deep = [".".join("a" * level) for level in range(1, 40)]
    (tree,) = recorded_trees(modules("", *deep, *deep), {}, 1.0)
    assert paths(tree) == ["", *deep]


def test_a_gap_in_the_paths_makes_no_second_model():
    (tree,) = recorded_trees(modules("", "a.b.c"), {"a.b.c": 2.0}, 4.0)
    assert paths(tree) == ["", "a.b.c"]
    assert tree.children[0].step_pct == 50.0
