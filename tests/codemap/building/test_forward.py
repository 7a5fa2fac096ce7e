"""Feature maps and connections from source, against what torch does with the same input."""

from __future__ import annotations

import pytest

from torchtraceap.codemap.building.forward import follow
from torchtraceap.codemap.building.roots import descendants
from torchtraceap.codemap.building.values import ModuleValue

from .programs import named, ran, style

torch = pytest.importorskip("torch")

STYLES = ["resnet", "vit", "unet", "swin", "dataclass_config", "arguments", "registry", "factories", "hub_config"]
STYLES += ["heads", "inheritance", "package/train"]


def real_calls(model, example):
    """Module path -> shape of the first output of its last call."""
    shapes = {}

    def note(path):
        def hook(module, args, output):
            first = output[0] if isinstance(output, (tuple, list)) else output
            if isinstance(first, dict):
                first = next(iter(first.values()))
            shapes[path] = tuple(first.shape)

        return hook

    hooks = [module.register_forward_hook(note(path)) for path, module in model.named_modules()]
    with torch.no_grad():
        model(example)
    for hook in hooks:
        hook.remove()
    return shapes


@pytest.mark.parametrize("name", STYLES)
def test_every_feature_map_has_its_real_size(name):
    program, path = style(name)
    if name == "package/train":
        program.roots()
    model, example = named(program, path, "model"), named(program, path, "example")
    assert isinstance(model, ModuleValue)
    forward = follow(program.machine, model, (example,))
    assert forward.is_whole
    paths = {id(module): path for path, module, _ in descendants(model)}
    found = {paths[id(module)]: calls.outputs[0] for module, calls in forward.calls.items() if calls.outputs}
    names = ran(name)
    expected = real_calls(names["model"].eval(), names["example"])
    assert found == expected
