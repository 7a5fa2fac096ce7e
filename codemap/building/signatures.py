"""Parameters of functions and constructors, and which argument goes to which."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from .values import MORE, Unknown, Value


@dataclass(slots=True)
class Arguments:
    """What a call is given."""

    args: list[Value] = field(default_factory=list)
    kwargs: dict[str, Value] = field(default_factory=dict)
    is_open: bool = False
    """Whether there are further ones that are not known (`*args`, `**options`)."""

    def get(self, position: int, name: str, default: Value = None) -> Value:
        """The argument at a position (from 0) or of a name."""
        if position < len(self.args):
            return self.args[position]
        return self.kwargs.get(name, Unknown(f"{name} may be given") if self.is_open else default)


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function."""

    positional: tuple[str, ...]
    keyword_only: tuple[str, ...] = ()
    star: str = ""
    """The name behind `*`; "" if there is none."""
    double_star: str = ""


def signature_of(node: ast.arguments) -> Signature:
    """The parameters that a definition spells."""
    return Signature(
        tuple(one.arg for one in [*node.posonlyargs, *node.args]),
        tuple(one.arg for one in node.kwonlyargs),
        node.vararg.arg if node.vararg else "",
        node.kwarg.arg if node.kwarg else "",
    )


def defaults_of(node: ast.arguments) -> Iterable[tuple[str, ast.expr]]:
    """Each parameter that has a default, with its expression."""
    positional = [*node.posonlyargs, *node.args]
    yield from zip([one.arg for one in positional[len(positional) - len(node.defaults) :]], node.defaults, strict=True)
    for parameter, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        if default is not None:
            yield parameter.arg, default


def bind(signature: Signature, given: Arguments, defaults: dict[str, Value]) -> dict[str, Value]:
    """Parameter -> value, in the order of the parameters. One that is given nothing and has no default is unknown."""
    args, is_open = given.args, given.is_open
    if MORE in args:
        args, is_open = args[: args.index(MORE)], True
    bound: dict[str, Value] = dict(zip(signature.positional, args, strict=False))
    rest = dict(given.kwargs)
    for name in (*signature.positional, *signature.keyword_only):
        if name in bound:
            rest.pop(name, None)
        elif name in rest:
            bound[name] = rest.pop(name)
        elif is_open:
            bound[name] = Unknown(f"{name} may be given", (defaults[name],) if name in defaults else ())
        else:
            bound[name] = defaults.get(name, Unknown(f"{name} is not given"))
    ordered = {name: bound[name] for name in (*signature.positional, *signature.keyword_only)}
    if signature.star:
        ordered[signature.star] = tuple(args[len(signature.positional) :])
    if signature.double_star:
        ordered[signature.double_star] = rest
    return ordered
