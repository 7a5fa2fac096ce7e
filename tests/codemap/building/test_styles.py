"""Models of many styles: what the evaluator says of them is what torch says after running them."""

from __future__ import annotations

import pytest

from torchtraceap.codemap.building.values import ModuleValue

from .programs import evaluated_shapes, named, ran, real_shapes, style

pytest.importorskip("torch")

NAMES = [
    ("resnet", "model"),
    ("resnet", "deep"),
    ("vit", "model"),
    ("unet", "model"),
    ("swin", "model"),
    ("dataclass_config", "model"),
    ("arguments", "model"),
    ("registry", "model"),
    ("factories", "model"),
    ("hub_config", "model"),
    ("heads", "model"),
    ("inheritance", "model"),
    ("package/train", "model"),
]


@pytest.mark.parametrize(("name", "variable"), NAMES)
def test_a_model_is_what_torch_builds(name, variable):
    program, path = style(name)
    if name == "package/train":
        program.roots()
    found = named(program, path, variable)
    assert isinstance(found, ModuleValue)
    expected = real_shapes(ran(name)[variable])
    evaluated = evaluated_shapes(found)
    assert list(evaluated) == list(expected)
    assert evaluated == expected


@pytest.mark.parametrize("name", sorted({name for name, _ in NAMES}))
def test_the_models_of_a_script_are_found(name):
    program, path = style(name)
    built = {root.name for root in program.roots() if root.path in (path, "nets/model.py") or root.node is not None}
    assert type(ran(name)["model"]).__name__ in built
