"""Queries, keys and values from three linear layers: one layer for the three, with old checkpoints still read."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .attention_parts import Refusal
from .base import Case, Confirmation, Cure, Fixer
from .edits import Patch
from .imports import name_for
from .outline import Outline, find, last_name
from .projections import Projection, by_input, projections, role
from .resolve import Resolver
from .scene import Scene, scene, searcher

_SLUG = "split-qkv"
_ROLE_WORDS = frozenset({"q", "k", "v", "query", "key", "value"})
"""Names of layers that are common words: elsewhere they may mean anything."""
_SPARE_NAMES = (("q", "k", "v"), ("queries", "keys", "values"))

_READS_OLD_CHECKPOINTS = '''
def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
    """Joins {names} of checkpoints from before they were one layer."""
    for kind in ("weight", "bias"):
        parts = [f"{{prefix}}{{name}}.{{kind}}" for name in ({quoted})]
        if all(part in state_dict for part in parts):
            state_dict[f"{{prefix}}{joined}.{{kind}}"] = {cat}([state_dict.pop(part) for part in parts])
    super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
'''


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    file = view.here.outline
    triple = _triple(view)
    if triple is None:
        return None
    place = file.location(file.statement(triple[0].call), case.location)
    related = tuple(
        Related(f"{one.name} is made here", file.location(file.statement(one.made), case.location))
        for one in triple
        if one.made is not None
    )
    try:
        return Confirmation(place, (_fix(view.resolver, file, triple),), related)
    except Refusal as reason:
        return Confirmation(place, (), related, str(reason))


def _triple(view: Scene) -> list[Projection] | None:
    """The three projections of one input that the place belongs to, in the order of the text."""
    file = view.here.outline
    statements = set(view.here.statements)
    for function in dict.fromkeys(file.function(statement) for statement in view.here.statements):
        for group in by_input(file, projections(file, function)):
            if len(group) > 3:
                group = [one for one in group if role(one.name) is not None]
            is_here = any(file.statement(one.call) in statements for one in group)
            if is_here and len(group) == 3 and len({one.name for one in group}) == 3:
                return group
    return None


def _fix(resolver: Resolver, file: Outline, triple: list[Projection]) -> Fix:
    made = [one.made for one in triple if one.made is not None]
    if len(made) < 3:
        raise Refusal("the three layers are not made by nn.Linear in this class")
    arguments = {ast.dump(ast.Tuple([*call.args, *(k.value for k in call.keywords)], ast.Load())) for call in made}
    names = {tuple(keyword.arg for keyword in call.keywords) for call in made}
    if len(arguments) > 1 or len(names) > 1:
        raise Refusal("the three layers differ in size or bias")
    _check_uses(resolver, file, triple)
    joined = _joined_name(file, triple)
    patch = Patch(file)
    _join_layers(patch, made, joined)
    _read_old_checkpoints(patch, made[0], [one.name for one in triple], joined)
    _join_calls(patch, triple, joined)
    title = f"Project queries, keys and values with one layer, {joined}"
    return Fix(_SLUG, title, Safety.UNSAFE, patch.edits())


def _check_uses(resolver: Resolver, file: Outline, triple: list[Projection]) -> None:
    """The layers must be used for nothing else: initialised, tied or adapted apart, they have to stay apart."""
    own = {one.call.func for one in triple}
    own |= {target for one in triple if one.made for target in _targets(file, one.made)}
    owner = file.enclosing_class(triple[0].call)
    for one in triple:
        for node in find(file.tree, ast.Attribute):
            is_meant = last_name(node.value) != "self" or file.enclosing_class(node) is owner
            is_telling = one.name not in _ROLE_WORDS or last_name(node.value) == "self"
            if node.attr == one.name and node not in own and is_meant and is_telling:
                raise Refusal(f"{one.name} is used elsewhere as well")
        if one.name not in _ROLE_WORDS and _is_used_by_others(resolver, file, one.name):
            raise Refusal(f"{one.name} is used in other files as well")


def _is_used_by_others(resolver: Resolver, file: Outline, name: str) -> bool:
    """Whether another file reaches into the module for the layer."""
    used = re.compile(rf"\b(?!self\b)\w+\.{re.escape(name)}\b")
    texts = (resolver.workspace.text(path) for path in resolver.workspace.paths() if path != file.path)
    return any(used.search(text) for text in texts if text and name in text)


def _targets(file: Outline, made: ast.Call) -> list[ast.expr]:
    statement = file.statement(made)
    if not isinstance(statement, ast.Assign) or statement.value is not made or len(statement.targets) != 1:
        raise Refusal("the layers are not made by plain statements")
    return statement.targets


def _joined_name(file: Outline, triple: list[Projection]) -> str:
    """The first layer's name with `qkv` for its `q`: `to_q` -> `to_qkv`, `query` -> `qkv`."""
    name = triple[0].name
    joined = re.sub(r"queries|query|(?<![a-zA-Z])([wW]?)[qQ](?![a-zA-Z])", r"\1qkv", name, count=1)
    if joined == name:
        joined = "qkv"
    owner = file.enclosing_class(triple[0].call)
    if owner is not None and any(node.attr == joined for node in find(owner, ast.Attribute)):
        raise Refusal(f"{joined}, the name for the one layer, is taken")
    return joined


def _join_layers(patch: Patch, made: list[ast.Call], joined: str) -> None:
    file = patch.outline
    first = made[0]
    block = file.block(file.statement(first))
    if any(file.statement(call) not in block for call in made):
        raise Refusal("the layers are made in different places")
    width = first.args[1] if len(first.args) > 1 else None
    width = next((keyword.value for keyword in first.keywords if keyword.arg == "out_features"), width)
    if width is None or any(isinstance(arg, ast.Starred) for arg in first.args):
        raise Refusal("the size of the layers is not written out")
    text = file.segment(width)
    is_atom = isinstance(width, ast.Name | ast.Attribute | ast.Constant | ast.Call | ast.Subscript)
    target = _targets(file, first)[0]
    if not isinstance(target, ast.Attribute):
        raise Refusal("the layers are not attributes of the module")
    end = file.span(target)[1]
    patch.replace_span(end - len(target.attr), end, joined)
    patch.replace(width, f"{text} * 3" if is_atom else f"({text}) * 3")
    patch.delete([file.statement(call) for call in made[1:]])


def _read_old_checkpoints(patch: Patch, made: ast.Call, names: list[str], joined: str) -> None:
    """A method behind the one that makes the layers."""
    file = patch.outline
    maker, owner = file.function(made), file.enclosing_class(made)
    if isinstance(maker, ast.Module) or owner is None:
        raise Refusal("the layers are made outside a method")
    if any(getattr(node, "name", "") == "_load_from_state_dict" for node in owner.body):
        raise Refusal("the class has a way of its own to load checkpoints")
    method = _READS_OLD_CHECKPOINTS.format(
        names=", ".join(names),
        quoted=", ".join(f'"{name}"' for name in names),
        joined=joined,
        cat=name_for(patch, "torch.cat"),
    )
    indent = file.indentation(maker)
    step = "\t" if indent.startswith("\t") else "    "
    lines = [f"{indent}{line.replace('    ', step)}" if line else "" for line in method.rstrip("\n").split("\n")]
    starts, last = [*file.line_starts, len(file.text)], maker.end_lineno or maker.lineno
    lead = "" if file.text[: starts[last]].endswith("\n") else file.newline
    patch.insert(starts[last], lead + file.newline.join(lines) + file.newline)


def _join_calls(patch: Patch, triple: list[Projection], joined: str) -> None:
    file = patch.outline
    calls = [one.call for one in triple]
    parts = f"self.{joined}({file.segment(triple[0].input)}).chunk(3, dim=-1)"
    parent = file.parents[calls[0]]
    if isinstance(parent, ast.Tuple | ast.List) and parent.elts == calls:
        patch.replace(parent, parts)
        return
    names = _names(file, calls)
    first = file.statement(calls[0])
    line = f"{', '.join(names)} = {parts}"
    plain = [
        isinstance(statement := file.statement(call), ast.Assign)
        and statement.value is call
        and _name_of(statement) == n
        for call, n in zip(calls, names, strict=True)
    ]
    if plain[0]:
        patch.replace(first, line)
    else:
        start = file.span(first)[0]
        patch.insert(start, f"{line}{file.newline}{file.indentation(first)}")
        patch.replace(calls[0], names[0])
    for call, name, is_plain in list(zip(calls, names, plain, strict=True))[1:]:
        if is_plain:
            patch.delete([file.statement(call)])
        else:
            patch.replace(call, name)


def _names(file: Outline, calls: list[ast.Call]) -> list[str]:
    """What the three results are called: as the statements that take them are, if nothing else is called so yet."""
    function, first = file.function(calls[0]), file.statement(calls[0])
    if not file.indentation(first) or any(file.statement(call) not in file.block(first) for call in calls):
        raise Refusal("the projections stand in different branches")
    bound = {node.id for node in find(function, ast.Name)}
    wanted: list[str] = []
    for call in calls:
        statement = file.statement(call)
        name = _name_of(statement)
        read = [
            node.lineno
            for node in find(function, ast.Name)
            if node.id == name
            and isinstance(node.ctx, ast.Load)
            and first.lineno <= node.lineno <= (statement.end_lineno or statement.lineno)
        ]
        wanted.append("" if read else name)
    if all(wanted) and len(set(wanted)) == len(wanted):
        return wanted
    for names in _SPARE_NAMES:
        if not bound & set(names):
            return list(names)
    raise Refusal("the results have no names of their own")


def _name_of(statement: ast.stmt) -> str:
    """The one name that a statement assigns to; "" if it is another statement."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else ""
    return ""


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("self.to_q(", "q_proj(", "query(", "wq(", "self.q(", "q_linear(", "to_queries(")),
    required=True,
    cure=Cure(re.compile(r"qkv\w*\(")),
)
