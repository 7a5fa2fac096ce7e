"""A device tensor indexed with a tensor on the host: make the index on the device, or keep it there as a buffer."""

from __future__ import annotations

import ast

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Fixer
from .bindings import FUNCTIONS
from .calls import edit_call
from .edits import Patch
from .outline import Outline, find, last_name
from .resolve import Definition, Resolver, Value
from .scene import Scene, scene, searcher

_SLUG = "host-tensor-index"
_MAKERS = (
    *("arange", "tensor", "as_tensor", "zeros", "ones", "full", "linspace", "eye", "empty"),
    *("tril_indices", "triu_indices", "randperm", "randint"),
)
_FROM_PYTHON = ("tensor", "as_tensor")
"""Made from Python's numbers: on the host first, whatever the device."""
_RANDOM = ("randperm", "randint")
"""Made on the device they draw from the device's generator: other numbers."""
_LEAVING = ("to", "cuda", "item", "tolist", "numpy", "size", "register_buffer")
"""Methods whose result does not lie where the tensor lies."""
_MOST_FOLLOWED = 40


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None or case.device.is_cpu:
        return None
    is_listed = False
    for subscript in _subscripts(view):
        indices = list(subscript.slice.elts) if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]
        makers = {maker.node: maker for index in indices for maker in _makers(view, index)}
        if makers:
            return _confirmation(view, subscript, _nearest(view.here.outline, subscript, list(makers.values())))
        is_listed = is_listed or any(isinstance(index, ast.List | ast.ListComp) for index in indices)
    if is_listed:
        return Confirmation(case.location, message="a list is an index on the host: keep it as a buffer on the device")
    return None


def _subscripts(view: Scene) -> list[ast.Subscript]:
    """What the statements index, assignments' targets too, in the order of the text."""
    found = {
        node
        for statement in view.here.statements
        for node in find(statement, ast.Subscript)
        if view.here.outline.statement(node) is statement
    }
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _makers(view: Scene, index: ast.expr) -> list[Value]:
    """The calls that make an index on the host; none where it is no tensor, or may come from elsewhere."""
    found: list[Value] = []
    queue, seen = [Value(view.here.outline, index)], set[ast.AST]()
    while queue and len(seen) < _MOST_FOLLOWED:
        value = queue.pop(0)
        if value.node in seen:
            continue
        seen.add(value.node)
        if _is_maker(value):
            found.append(value)
        else:
            queue += _behind(view, value)
    return [] if any(_has_device(maker) for maker in found) else found


def _behind(view: Scene, value: Value) -> list[Value]:
    """What an expression's tensor lies where it lies because of: operands, receivers, what a name was given."""
    file = value.outline
    match value.node:
        case ast.BinOp(left=left, right=right):
            return [Value(file, left), Value(file, right)]
        case ast.Call(func=ast.Attribute(value=receiver, attr=method)) if method not in _LEAVING:
            return [] if file.dotted(value.node.func).startswith("torch.") else [Value(file, receiver)]
        case ast.Name() as name:
            bound = file.lookup(name)
            given = [one.value for one in bound if one.value is not None and one.index is None and not one.is_element]
            if not given and view.case.callers:
                # A parameter: what the call on the stack passes.
                return view.resolver.find(value, _is_maker, lambda one: isinstance(one.node, ast.Name))
            return [Value(file, one) for one in given]
        case ast.Attribute(value=ast.Name(id="self")):
            return view.resolver.find(value, lambda one: one.node is not value.node)
        case _:
            return []


def _has_device(maker: Value) -> bool:
    return isinstance(maker.node, ast.Call) and any(one.arg in ("device", None) for one in maker.node.keywords)


def _nearest(file: Outline, subscript: ast.Subscript, makers: list[Value]) -> list[Value]:
    """Those of the function itself, or of its class, where there are any: what a caller passes may be anything."""
    function, owner = file.function(subscript), file.enclosing_class(subscript)
    own = [one for one in makers if one.outline is file and file.function(one.node) is function]
    of_class = [one for one in makers if one.outline is file and owner and file.enclosing_class(one.node) is owner]
    return own or of_class or makers


def _confirmation(view: Scene, subscript: ast.Subscript, makers: list[Value]) -> Confirmation:
    file = makers[0].outline
    place = file.location(file.statement(makers[0].node), view.case.location)
    related = () if place.line == view.case.location.line else (Related("it indexes here", view.case.location),)
    fix = _kept(view.resolver, makers) or _made_there(subscript, view.here.outline, makers)
    if fix is not None:
        return Confirmation(place, (fix,), related)
    if any(last_name(getattr(maker.node, "func", maker.node)) in _FROM_PYTHON for maker in makers):
        advice = "numbers of Python are copied to whatever device: make the index once and keep it as a buffer"
    else:
        advice = "the index is made where the device is not known: move it there once"
    return Confirmation(place, (), related, advice)


def _is_maker(value: Value) -> bool:
    node = value.node
    if not isinstance(node, ast.Call):
        return False
    name = value.outline.dotted(node.func)
    return name.startswith("torch.") and name.count(".") == 1 and last_name(node.func) in _MAKERS


def _kept(resolver: Resolver, makers: list[Value]) -> Fix | None:
    """`self.index = torch.arange(n)` of a module as a buffer, which moves with it."""
    patch = Patch(makers[0].outline)
    statements = {maker.outline.statement(maker.node): maker for maker in makers}
    for statement, maker in statements.items():
        target = _own_attribute(resolver, maker)
        if maker.outline is not makers[0].outline or target is None:
            return None
        assert isinstance(statement, ast.Assign)
        value = maker.outline.segment(statement.value)
        patch.replace(statement, f'self.register_buffer("{target}", {value}, persistent=False)')
    return Fix(_SLUG, "Keep the index as a buffer, which moves with the module", Safety.SAFE, patch.edits())


def _own_attribute(resolver: Resolver, maker: Value) -> str | None:
    """The attribute that a module's constructor, and nothing else, gives what is made."""
    file = maker.outline
    statement, owner = file.statement(maker.node), file.enclosing_class(maker.node)
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1) or owner is None:
        return None
    target = statement.targets[0]
    if not (isinstance(target, ast.Attribute) and last_name(target.value) == "self"):
        return None
    stores = [
        node
        for node in find(owner, ast.Attribute)
        if node.attr == target.attr and isinstance(node.ctx, ast.Store) and last_name(node.value) == "self"
    ]
    is_module = any(base.endswith("Module") for base in resolver.base_names(Definition(file, owner)))
    is_in_constructor = getattr(file.function(statement), "name", "") == "__init__"
    return target.attr if is_module and is_in_constructor and len(stores) == 1 else None


def _made_there(subscript: ast.Subscript, file: Outline, makers: list[Value]) -> Fix | None:
    """The indices made on the indexed tensor's device, where that tensor is known by then."""
    base = subscript.value
    function = file.function(subscript)
    if not isinstance(base, ast.Name | ast.Attribute) or not isinstance(function, FUNCTIONS):
        return None
    patch = Patch(file)
    for maker in makers:
        call = maker.node
        assert isinstance(call, ast.Call)
        if maker.outline is not file or function is not file.function(call) or last_name(call.func) in _FROM_PYTHON:
            return None
        if not _is_known_by(file, base, call) or not _only_indexes(file, call, subscript):
            return None
        column = file.position(file.span(call)[0])[1] - 1
        patch.replace(call, edit_call(file.segment(call), {"device": f"{file.segment(base)}.device"}, column=column))
    names = [last_name(maker.node.func) for maker in makers if isinstance(maker.node, ast.Call)]
    safety = Safety.UNSAFE if any(name in _RANDOM for name in names) else Safety.SAFE
    return Fix(_SLUG, "Make the index on the device (device=...)", safety, patch.edits())


def _is_known_by(file: Outline, base: ast.expr, maker: ast.expr) -> bool:
    """Whether a name holds a tensor already where the index is made."""
    root = base
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    bound = file.bindings(file.function(maker), root.id)
    return not bound or any(
        isinstance(one.node, ast.arg) or getattr(one.node, "lineno", maker.lineno) < maker.lineno for one in bound
    )


def _only_indexes(file: Outline, maker: ast.expr, subscript: ast.Subscript) -> bool:
    """Whether the function uses the index for nothing but indexing: anything else may want it on the host."""
    statement = file.statement(maker)
    if statement is file.statement(subscript):
        return True
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return False
    reads = [
        node for node in find(file.function(maker), ast.Name) if node.id == target.id and isinstance(node.ctx, ast.Load)
    ]
    return all(_is_index(file, node) for node in reads)


def _is_index(file: Outline, node: ast.expr) -> bool:
    parent = file.parents[node]
    if isinstance(parent, ast.Tuple):
        node, parent = parent, file.parents[parent]
    return isinstance(parent, ast.Subscript) and parent.slice is node


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("[torch.", "[self.", "idx]", "index]", "indices]", "perm]", "rows, ", "[idx", "[rows")),
)
