"""Finding the model: the call that runs it, and the statement that constructs it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .outline import Outline, last_name
from .resolve import Definition, Resolver, Value
from .scene import Frame, Scene, frames_with

_LAYERS = ("torch.nn.functional.", "torch.optim", "torch.utils", "torch.profiler", "torch.device")
_BUILDERS = (
    "torchvision.models.",
    "timm.create_model",
    "segmentation_models_pytorch.",
    "torch.hub.load",
    "monai.networks",
)
CALL_WORDS = ("model(", "net(", "backbone(", "encoder(", "network(", "self(")
"""What the text of a statement that calls a model holds."""
_NO_MODULES = ("Parameter", "DataParallel", "Buffer")
_NO_MODELS = (
    "Loss",
    "Softmax",
    "Sigmoid",
    "ReLU",
    "Tanh",
    "GELU",
    "SiLU",
    "Dropout",
    "Flatten",
    "Identity",
    "Upsample",
)
"""Ends of the names of `torch.nn` classes without weights: what is called by their instances is no model."""
_CHAINED = ("to", "cuda", "eval", "train", "half", "float", "bfloat16", "requires_grad_")
_KEEPING = (*_CHAINED, "compile", "DataParallel", "DistributedDataParallel", "prepare", "setup", "script", "deepcopy")
"""Calls that give back the module they were given, or a wrapper that is called like it."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call that runs a model, and the expressions that constructed the model."""

    frame: Frame
    call: ast.Call
    constructions: tuple[Value, ...]

    @property
    def outline(self) -> Outline:
        """The file of the call."""
        return self.frame.outline


def model_call(scene: Scene) -> ModelCall | None:
    """The outermost call, on the stack or at the place itself, of a model whose construction the workspace holds.

    Outermost, because a fix concerns the whole model: of `block(x)` inside `model(x)` it is `model(x)`.
    """
    for frame in reversed(scene.frames):
        if found := _model_called(scene.resolver, frame):
            return found
    return None


def only_model_call(scene: Scene) -> ModelCall | None:
    """The call of the workspace's only model, for a trace that doesn't say what was called from where."""
    found: ModelCall | None = None
    for frame in frames_with(scene.case.workspace, CALL_WORDS):
        called = _model_called(scene.resolver, frame)
        if called is None:
            continue
        if found is not None and called.constructions[0].node is not found.constructions[0].node:
            return None
        found = found or called
    return found


def _model_called(resolver: Resolver, frame: Frame) -> ModelCall | None:
    """The first call of a model in a frame's statements."""
    for call in frame.calls():
        if last_name(call.func) == "self":
            built = _own_constructions(resolver, frame.outline, call)
        elif _may_be_model(call.func) and not _is_layer_of_model(resolver, frame.outline, call):
            built = constructions(resolver, Value(frame.outline, call.func))
        else:
            continue
        if built:
            return ModelCall(frame, call, tuple(built))
    return None


def _own_constructions(resolver: Resolver, file: Outline, call: ast.Call) -> list[Value]:
    """Where the modules are constructed that call themselves: `self(x)` in a `training_step`."""
    owner = file.enclosing_class(call)
    if owner is None:
        return []
    made = [one for one in resolver.calls_of(owner.name) if is_construction(resolver, one)]
    classes = [(one, resolver.instance_class(one)) for one in made]
    return [one for one, its_class in classes if its_class is not None and its_class.node is owner]


def constructions(resolver: Resolver, model: Value) -> list[Value]:
    """The constructor calls of `nn.Module`s that a value may come from."""
    if resolver.definition(model) is not None:  # a function or a class is called, not an instance
        return []

    def keeps_module(value: Value) -> bool:
        """Whether what an expression gives can be the module that goes in: not the result of running it."""
        if not isinstance(value.node, ast.Call):
            return True
        return (
            last_name(value.node.func) in _KEEPING
            or resolver.definition(Value(value.outline, value.node.func)) is not None
        )

    found = resolver.find(model, lambda one: is_construction(resolver, one), keeps_module)
    # A registry or a table of classes makes it: then the call of the workspace's own builder is the construction.
    return found or resolver.find(model, _is_built_model, keeps_module)


def _may_be_model(func: ast.expr) -> bool:
    """A name, `self.net`, `models["a"]` or `trainer.model`; not the method of a module or a tensor."""
    if isinstance(func, ast.Attribute):
        return last_name(func.value) in ("self", "cls") or func.attr in ("model", "net", "network", "module")
    return isinstance(func, ast.Name | ast.Subscript)


def is_construction(resolver: Resolver, value: Value) -> bool:
    """Whether an expression constructs a module: a workspace class derived from one, or a library's builder."""
    if not isinstance(value.node, ast.Call):
        return False
    name = value.outline.dotted(value.node.func)
    if name.startswith(_BUILDERS) or name == "timm.create_model" or last_name(value.node.func) == "from_pretrained":
        return True
    if name.startswith("torch.nn.") and not name.startswith(_LAYERS):
        kind = name.split(".")[2]
        return kind[:1].isupper() and kind not in _NO_MODULES and not kind.endswith(_NO_MODELS)
    made = resolver.instance_class(value)
    if made is None:
        return _is_named_model(resolver, value)
    return any(
        base in ("torch.nn.Module", "torch.nn.modules.module.Module")
        or last_part(base).endswith(("Module", "Sequential"))
        for base in resolver.base_names(made)
    )


def _is_named_model(resolver: Resolver, value: Value) -> bool:
    """A call of something outside the workspace whose result is called a model: `net = smp.Unet(...)`."""
    assert isinstance(value.node, ast.Call)
    return _is_built_model(value) and resolver.definition(Value(value.outline, value.node.func)) is None


def _is_built_model(value: Value) -> bool:
    """A call that looks like a constructor or a builder, whose result is called a model."""
    if not isinstance(value.node, ast.Call):
        return False
    file, func = value.outline, value.node.func
    target = assigned_target(file, chain_end(file, value.node))
    if target is None or not any(word in last_name(target).lower() for word in ("model", "net", "backbone", "encoder")):
        return False
    if last_name(func) in _KEEPING or file.dotted(func).startswith(("torch.", "copy.")):
        return False
    return last_name(func)[:1].isupper() or last_name(func).startswith(("build", "create", "get", "make", "load"))


def last_part(dotted: str) -> str:
    """The part behind the last dot."""
    return dotted.rpartition(".")[2]


def _is_layer_of_model(resolver: Resolver, file: Outline, call: ast.Call) -> bool:
    """A call in a module's own method runs a part of a model, not one; a LightningModule's steps run the model."""
    owner = file.enclosing_class(call)
    if owner is None:
        return False
    bases = resolver.base_names(Definition(file, owner))
    return any(last_part(base) in ("Module", "Sequential") for base in bases)


def chain_end(file: Outline, construction: ast.expr) -> ast.expr:
    """The whole expression that a construction begins: `Net().eval().to(device)` of `Net()`."""
    current = construction
    while True:
        parent = file.parents[current]
        if not (isinstance(parent, ast.Attribute) and isinstance(call := file.parents[parent], ast.Call)):
            return current
        if call.func is not parent or parent.attr not in _CHAINED:
            return current
        current = call


def assigned_target(file: Outline, value: ast.expr) -> ast.expr | None:
    """The name or attribute that a statement gives a value to; None if it is not plainly assigned."""
    statement = file.statement(value)
    if isinstance(statement, ast.Assign) and statement.value is value and len(statement.targets) == 1:
        target = statement.targets[0]
        return target if isinstance(target, ast.Name | ast.Attribute) else None
    return None
