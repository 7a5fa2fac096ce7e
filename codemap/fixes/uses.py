"""What becomes of a tensor once an expression has made it: only read, written to in place, or out of sight."""

from __future__ import annotations

import ast
from enum import IntEnum

from .bindings import FUNCTIONS, walk_scope
from .outline import Outline, last_name


class Use(IntEnum):
    """The worst that is done with a tensor or a view of it, as far as one function shows; in order."""

    READ = 0
    """Goes into operators that only read it and give a new tensor."""
    PASSED = 1
    """Goes into a call that might write to it, or keep it."""
    KEPT = 2
    """Returned, stored in an attribute or put into a collection: it outlives the function."""
    WRITTEN = 3
    """Written to in place."""


_VIEWS = frozenset(
    {
        "view",
        "reshape",
        "permute",
        "transpose",
        "detach",
        "unsqueeze",
        "squeeze",
        "flatten",
        "expand",
        "narrow",
        "select",
    }
    | {"t", "contiguous", "to", "float", "half", "double", "bfloat16", "cpu", "cuda", "view_as", "expand_as", "movedim"}
    | {"unflatten", "swapaxes", "chunk", "split", "unbind", "T", "mT", "real", "imag", "as_strided", "type", "type_as"}
)
"""What may give the same memory again."""
_READING = frozenset(
    {
        "sum",
        "mean",
        "max",
        "min",
        "amax",
        "amin",
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "abs",
    }
    | {"sigmoid", "tanh", "relu", "gelu", "silu", "softmax", "log_softmax", "argmax", "argmin", "topk", "sort", "norm"}
    | {"matmul", "mm", "bmm", "addmm", "einsum", "cat", "stack", "where", "clamp", "clip", "item", "tolist", "size"}
    | {"dim", "numel", "std", "var", "any", "all", "eq", "ne", "gt", "lt", "ge", "le", "repeat", "gather", "clone"}
    | {"index_select", "masked_fill", "masked_select", "cumsum", "flip", "roll", "interpolate", "pad", "square", "neg"}
    | {"conv1d", "conv2d", "conv3d", "linear", "layer_norm", "batch_norm", "group_norm", "cross_entropy", "mse_loss"}
    | {"l1_loss", "smooth_l1_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "nll_loss", "normalize"}
    | {"scaled_dot_product_attention", "one_hot", "isfinite", "isnan", "logical_and", "logical_or", "round", "floor"}
    | {
        "logical_not",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "rand_like",
        "randn_like",
        "int",
        "long",
        "bool",
    }
    | {"outer", "dot", "cosine_similarity", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "sin", "cos", "maximum"}
    | {"minimum", "allclose", "equal", "nonzero", "unique", "dist", "cdist", "lerp", "addcmul", "dropout", "stride"}
)
_COLLECTING = frozenset({"append", "extend", "insert", "appendleft", "put", "update", "setdefault", "push"})
"""Methods of collections that keep what they are given."""
_METADATA = frozenset({"shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "layout"})


def use_of(file: Outline, made: ast.expr) -> Use:
    """What the function of an expression does with the tensor it makes."""
    return _use(file, made, set())


def worst_use(file: Outline, name: ast.expr) -> Use:
    """The worst that is done with the tensor of a name by the function that reads it, names bound to it left out; of
    an attribute by the whole file."""
    text = ast.dump(name).replace("Store()", "Load()")
    nodes = file.nodes if isinstance(name, ast.Attribute) else list(walk_scope(file.function(name)))
    same = [node for node in nodes if isinstance(node, ast.Name | ast.Attribute) and _is_same(node, text)]
    uses = [
        Use.WRITTEN if _writes(file, node) else _use(file, node, None) for node in same if not _is_bound(file, node)
    ]
    return max(uses, default=Use.READ)


def _is_bound(file: Outline, node: ast.expr) -> bool:
    """Whether a name is only given a value: another tensor from there on."""
    parent = file.parents[node]
    return isinstance(parent, ast.Assign | ast.For | ast.comprehension | ast.Tuple) and not isinstance(
        getattr(node, "ctx", None), ast.Load
    )


def _is_same(node: ast.expr, text: str) -> bool:
    return ast.dump(node).replace("Store()", "Load()") == text


def _use(file: Outline, made: ast.expr, names: set[str] | None) -> Use:
    node = made
    while True:
        parent = file.parents[node]
        if isinstance(parent, ast.Attribute):
            following = _by_method(file, parent)
        elif isinstance(parent, ast.Call):
            following = _by_function(file, parent)
        elif isinstance(parent, ast.Subscript):
            following = parent if parent.value is node else Use.READ
        elif isinstance(parent, ast.IfExp | ast.NamedExpr | ast.Starred | ast.Await):
            following = parent
        elif isinstance(parent, ast.keyword):
            following = Use.WRITTEN if parent.arg == "out" else _by_function(file, file.parents[parent])
        elif isinstance(parent, ast.List | ast.Tuple) and isinstance(file.parents[parent], ast.Call):
            following = _by_function(file, file.parents[parent])  # `torch.cat([x, y])`
        else:
            return _by_statement(file, parent, node, names)
        if isinstance(following, Use):
            return following
        if _writes(file, following):
            return Use.WRITTEN
        node = following


def _by_method(file: Outline, method: ast.Attribute) -> Use | ast.expr:
    call = file.parents[method]
    if method.attr in _METADATA:
        return Use.READ
    if not (isinstance(call, ast.Call) and call.func is method):
        return method if method.attr in _VIEWS else Use.PASSED
    if method.attr.endswith("_") and not method.attr.endswith("__"):
        return Use.WRITTEN
    return call if method.attr in _VIEWS else Use.READ if method.attr in _READING else Use.PASSED


def _by_function(file: Outline, call: ast.AST) -> Use | ast.expr:
    if not isinstance(call, ast.Call):
        return Use.PASSED
    name, library = last_name(call.func), file.dotted(call.func).rpartition(".")[0]
    is_method = isinstance(call.func, ast.Attribute) and not library.startswith("torch")
    inplace = next((keyword.value for keyword in call.keywords if keyword.arg == "inplace"), None)
    if inplace is not None:
        return Use.WRITTEN if getattr(inplace, "value", None) is True else Use.PASSED
    if library.startswith("torch") or (is_method and name in ("add", "sub", "mul", "matmul", "div", "eq", "maximum")):
        return call if name in _VIEWS else Use.READ if name in _READING else Use.PASSED
    if isinstance(call.func, ast.Attribute) and name in _COLLECTING:
        return Use.KEPT
    if isinstance(call.func, ast.Name) and call.func.id in ("print", "len", "float", "int", "bool", "isinstance"):
        return Use.READ
    return Use.PASSED


def _by_statement(file: Outline, parent: ast.AST, node: ast.expr, names: set[str] | None) -> Use:
    match parent:
        case ast.BinOp() | ast.Compare() | ast.UnaryOp() | ast.FormattedValue() | ast.Expr() | ast.If() | ast.While():
            return Use.READ
        case ast.AugAssign(target=target):
            return Use.WRITTEN if target is node else Use.READ
        case ast.Assign(targets=[ast.Name(id=name)]) if names is not None:
            return _use_of_name(file, parent, name, names)
        case ast.Assign(targets=[ast.Subscript() as target]):
            return Use.READ if _copies_values(file, target) else Use.KEPT
        case ast.Assign() if names is None:
            return Use.READ
        case ast.BoolOp():
            return Use.PASSED
        case _:
            return Use.KEPT


def _copies_values(file: Outline, target: ast.Subscript) -> bool:
    """Whether what is stored under an index is copied into a tensor; a list or a dict would keep it."""
    if any(isinstance(node, ast.Slice | ast.Tuple) for node in ast.walk(target.slice)):
        return True
    bound = file.lookup(target.value) if isinstance(target.value, ast.Name) else []
    made = [one.value for one in bound if one.value is not None]
    return bool(made) and all(isinstance(one, ast.Call) and file.dotted(one.func).startswith("torch.") for one in made)


def _use_of_name(file: Outline, statement: ast.stmt, name: str, names: set[str]) -> Use:
    """The worst that the function does with a name from where it was bound; a name bound twice is followed once."""
    if name in names:
        return Use.READ
    names.add(name)
    function = file.function(statement)
    if not isinstance(function, FUNCTIONS):
        return Use.KEPT
    worst = Use.READ
    for node in walk_scope(function):
        if isinstance(node, ast.Name) and node.id == name and file.statement(node) is not statement:
            if _writes(file, node):
                return Use.WRITTEN
            if isinstance(node.ctx, ast.Load):
                worst = max(worst, _use(file, node, names))
        elif isinstance(node, ast.Lambda | ast.FunctionDef) and any(
            isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(node)
        ):
            worst = max(worst, Use.PASSED)
    return worst


def _writes(file: Outline, node: ast.expr) -> bool:
    """Whether a name, or an element of it, is the target of an assignment that writes into the tensor."""
    current: ast.AST = node
    while isinstance(outer := file.parents[current], ast.Subscript) and outer.value is current:
        current = outer
        if isinstance(current.ctx, ast.Store | ast.Del):
            return True
    parent = file.parents[current]
    return isinstance(parent, ast.AugAssign) and parent.target is current
