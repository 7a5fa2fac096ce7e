"""Whether an expression gives the same in every call: made of sizes, settings and numbers, not of a tensor's values."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .bindings import FUNCTIONS, Binding
from .outline import Outline, find, last_name
from .resolve import Resolver, Value

FACTORIES = frozenset(
    f"torch.{name}"
    for name in ("arange", "linspace", "logspace", "eye", "ones", "zeros", "full", "empty", "tensor", "as_tensor")
) | frozenset(f"torch.{name}" for name in ("tril_indices", "triu_indices", "hann_window", "hamming_window"))
_RANDOM = ("rand", "randn", "randint", "randperm", "normal", "bernoulli", "dropout", "multinomial", "empty")
_FACTS = ("shape", "device", "dtype", "ndim")
"""What may be asked of any tensor without its values."""
_FACT_METHODS = ("size", "dim", "numel", "ndimension", "get_device", "stride")
_BUILTINS = ("int", "float", "bool", "len", "range", "list", "tuple", "max", "min", "sum", "zip", "enumerate", "round")
_NUMBERS = ("int", "float", "bool", "str", "device", "dtype", "Size", "Tuple", "tuple", "List", "list", "Sequence")
_MAX_DEPTH = 12


@dataclass(slots=True)
class Unchanging:
    """Answers for the expressions of one function."""

    resolver: Resolver
    outline: Outline
    function: ast.AST
    reads_inputs: bool = False
    """Whether anything asked so far takes sizes from what the function is given; `device=` does not count."""
    _open: set[ast.AST] = field(default_factory=set)

    def holds(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether an expression gives the same whenever sizes and settings are the same."""
        if depth > _MAX_DEPTH:
            return False
        match node:
            case ast.Constant():
                return True
            case ast.Name():
                return self._name(node, depth)
            case ast.Attribute():
                return self._attribute(node, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.Lambda() | ast.Yield() | ast.Await():
                return False
            case ast.ListComp() | ast.GeneratorExp():
                sources = [generator.iter for generator in node.generators]
                return all(self.holds(one, depth + 1) for one in (*sources, node.elt))
            case _:
                return all(
                    self.holds(one, depth + 1) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)
                )

    def _name(self, name: ast.Name, depth: int) -> bool:
        if self.outline.dotted(name) != name.id or name.id in ("True", "False", "None"):
            return True  # an import
        bound = self.outline.lookup(name)
        if not bound:
            return name.id in _BUILTINS
        return all(self._binding(one, depth) for one in bound)

    def _binding(self, binding: Binding, depth: int) -> bool:
        node = binding.node
        if isinstance(node, ast.arg):
            self.reads_inputs = True
            return self._is_setting(node)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return True
        if binding.value is None or node in self._open:
            return node in self._open
        self._open.add(node)
        found = self.holds(binding.value, depth + 1)
        self._open.discard(node)
        return found

    def _is_setting(self, parameter: ast.arg) -> bool:
        """Whether a parameter is certainly no tensor: by its annotation, or by a use that takes only numbers."""
        if parameter.annotation is not None and last_name(_bare(parameter.annotation)) in _NUMBERS:
            return True
        if "device" in parameter.arg or "dtype" in parameter.arg:
            return True
        for call in find(self.function, ast.Call):
            takes_numbers = self.outline.dotted(call.func) in FACTORIES - {"torch.tensor", "torch.as_tensor"}
            takes_numbers = takes_numbers or last_name(call.func) in ("range", "view", "reshape", "repeat", "expand")
            if takes_numbers and any(one.id == parameter.arg for arg in call.args for one in _plain_names(arg)):
                return True
        return False

    def _attribute(self, node: ast.Attribute, depth: int) -> bool:
        if node.attr in _FACTS:
            self.reads_inputs = self.reads_inputs or last_name(node.value) != "self"
            return True
        if self.outline.dotted(node).partition(".")[0] in ("torch", "math", "numpy"):
            return True
        if last_name(node.value) in ("self", "cls"):
            return not self._is_trained(node)
        return self.holds(node.value, depth + 1)

    def _is_trained(self, node: ast.Attribute) -> bool:
        """Whether an attribute holds a parameter, or a module."""
        made = self.resolver.find(Value(self.outline, node), lambda one: isinstance(one.node, ast.Call))
        names = [one.outline.dotted(one.node.func) for one in made if isinstance(one.node, ast.Call)]
        return any(name.startswith("torch.nn.") for name in names)

    def _call(self, call: ast.Call, depth: int) -> bool:
        dotted, name = self.outline.dotted(call.func), last_name(call.func)
        if name.rstrip("_") in _RANDOM:
            return False
        if name in _FACT_METHODS and isinstance(call.func, ast.Attribute):
            self.reads_inputs = True
            return True
        read_inputs = self.reads_inputs
        if not all(self.holds(keyword.value, depth + 1) for keyword in call.keywords if keyword.arg == "device"):
            return False
        self.reads_inputs = read_inputs
        given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg != "device")]
        if dotted.startswith(("torch.", "math.", "numpy.")) or dotted in _BUILTINS:
            return all(self.holds(arg, depth + 1) for arg in given)
        if isinstance(call.func, ast.Attribute) and last_name(call.func.value) != "self":
            return self.holds(call.func.value, depth + 1) and all(self.holds(arg, depth + 1) for arg in given)
        return False


def _bare(annotation: ast.expr) -> ast.expr:
    """`Tuple[int, int]` -> `Tuple`, `int | None` -> `int`."""
    while isinstance(annotation, ast.Subscript | ast.BinOp):
        annotation = annotation.value if isinstance(annotation, ast.Subscript) else annotation.left
    return annotation


def _plain_names(node: ast.expr) -> list[ast.Name]:
    """The names in an argument that are numbers there: alone, or in arithmetic."""
    if isinstance(node, ast.Name):
        return [node]
    if isinstance(node, ast.BinOp):
        return [*_plain_names(node.left), *_plain_names(node.right)]
    return _plain_names(node.operand) if isinstance(node, ast.UnaryOp) else []
