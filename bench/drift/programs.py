"""Random programs in the words of vision code, and random edits of them. Every statement keeps its number."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field

_VALUES = ("x", "y", "out", "q", "k", "feats", "mask", "h")
_LAYERS = ("conv1", "conv2", "norm", "proj", "head", "attn", "mlp", "down")
_CALLS = ("torch.relu({a})", "F.softmax({a}, dim=-1)", "{a}.transpose(1, 2)", "{a}.permute(0, 2, 3, 1).contiguous()",
          "F.interpolate({a}, scale_factor=2)", "torch.cat([{a}, {b}], dim=1)", "{a}.view({a}.shape[0], -1)",
          "{a}.to('cuda', non_blocking=True)", "F.dropout({a}, {n}, self.training)", "{a}[{b} > 0.{n}]",
          "{a}.flatten({n})", "torch.stack([{a}, {b}])", "{a}.mean((2, 3))")  # fmt: skip
_OPERATORS = ("{a} + {b}", "{a} @ {b}", "{a} * {n}", "({a} - {b}) / {n}", "{a} @ {b}.transpose(-2, -1) * self.scale")
_ALONE = ("losses.append({a}.item())", "optimizer.step()", "optimizer.zero_grad()", "loss.backward()",
          "print({a}.shape)", "meter.update({a}.item(), {n})", "torch.cuda.synchronize()")  # fmt: skip
_HEADERS = ("if {a} is not None:", "for {a} in self.blocks:", "with torch.no_grad():", "while {a}.sum() > {n}:",
            "for i, {a} in enumerate(loader):", "if self.training:")  # fmt: skip
_NAMES = ("forward", "encode", "decode", "train_step", "evaluate", "attention", "window", "merge", "loss_of", "resize")
_CLASSES = ("Net", "Block", "Attention", "Encoder", "Head", "Stage")


@dataclass(slots=True)
class Statement:
    """A statement, with those that it holds. `number` says which it is through all edits."""

    number: int
    text: str
    body: list[Statement] = field(default_factory=list)


@dataclass(slots=True)
class Function:
    """A function; a method where it stands in a class."""

    number: int
    name: str
    body: list[Statement]


@dataclass(slots=True)
class Class:
    """A class and its methods."""

    number: int
    name: str
    methods: list[Function]


@dataclass(slots=True)
class Program:
    """A file."""

    items: list[Function | Class]
    numbers: Iterator[int]

    def functions(self) -> list[tuple[list[Function] | list[Function | Class], Function]]:
        """Every function with the list that holds it."""
        found: list[tuple[list[Function] | list[Function | Class], Function]] = []
        for item in self.items:
            if isinstance(item, Class):
                found += [(item.methods, method) for method in item.methods]
            else:
                found.append((self.items, item))
        return found

    def blocks(self) -> list[list[Statement]]:
        """Every list of statements."""
        pending = [function.body for _, function in self.functions()]
        found = []
        while pending:
            block = pending.pop()
            found.append(block)
            pending += [statement.body for statement in block if statement.body]
        return found


@dataclass(frozen=True, slots=True)
class Rendered:
    """A program's text, and on which line each statement and function stands."""

    text: str
    line_of: dict[int, int]
    text_of: dict[int, str]
    holder_of: dict[int, tuple[int, int]]
    """The function and the class (-1 for none) that a statement stands in."""

    @property
    def held_by(self) -> dict[int, list[int]]:
        """The statements in each function and class."""
        held: dict[int, list[int]] = {}
        for number, holders in self.holder_of.items():
            for holder in holders:
                held.setdefault(holder, []).append(number)
        return {number: held.get(number, []) for number in self.line_of}


def random_program(chance: random.Random) -> Program:
    """Some classes and functions of a few statements each."""
    program = Program([], itertools.count())
    names = iter(chance.sample(_NAMES, len(_NAMES)))
    for class_name in chance.sample(_CLASSES, chance.randint(0, 3)):
        methods = [_function(chance, program, name) for name in chance.sample(_NAMES, chance.randint(1, 3))]
        program.items.append(Class(next(program.numbers), class_name, methods))
    for _ in range(chance.randint(1, 3)):
        program.items.append(_function(chance, program, next(names)))
    return program


def edited(program: Program, chance: random.Random, edits: int) -> Program:
    """A copy after `edits` random edits."""
    changed = Program(deepcopy(program.items), program.numbers)
    for _ in range(edits):
        chance.choice(_EDITS)(changed, chance)
    return changed


def render(program: Program, chance: random.Random) -> Rendered:
    """The text, laid out at random: blank lines, comments, quotes, broken lines."""
    lines = ["import torch", "import torch.nn.functional as F", ""]
    line_of: dict[int, int] = {}
    text_of: dict[int, str] = {}
    holder_of: dict[int, tuple[int, int]] = {}
    quotes = chance.random() < 0.5
    breaks = chance.choice((0.0, 0.0, 0.3))
    comments = chance.choice((0.0, 0.0, 0.2))

    def put(number: int, text: str, indent: int) -> None:
        if chance.random() < comments:
            lines.append("    " * indent + chance.choice(("# see the paper", "# TODO: faster", "")))
        line_of[number], text_of[number] = len(lines) + 1, text
        written = text.replace("'", '"') if quotes else text
        target, equals, value = written.partition(" = ")
        if equals and chance.random() < breaks:
            inner = "    " * (indent + 1)
            lines.extend(["    " * indent + f"{target} = (", inner + value, "    " * indent + ")"])
        else:
            lines.append("    " * indent + written)

    def put_block(block: list[Statement], indent: int, holders: tuple[int, int]) -> None:
        for statement in block:
            put(statement.number, statement.text, indent)
            holder_of[statement.number] = holders
            if statement.text.endswith(":"):
                put_block(statement.body, indent + 1, holders)
        if not block:
            lines.append("    " * indent + "pass")

    def put_function(function: Function, indent: int, holder: int = -1) -> None:
        lines.extend([""] * chance.randint(1, 2))
        arguments = "self, x, y" if indent else "x, y"
        put(function.number, f"def {function.name}({arguments}):", indent)
        put_block(function.body, indent + 1, (function.number, holder))

    for item in program.items:
        if isinstance(item, Class):
            lines.append("")
            put(item.number, f"class {item.name}(nn.Module):", 0)
            if not item.methods:
                lines.append("    pass")
            for method in item.methods:
                put_function(method, 1, item.number)
        else:
            put_function(item, 0)
    return Rendered("\n".join(lines) + "\n", line_of, text_of, holder_of)


def _function(chance: random.Random, program: Program, name: str) -> Function:
    number = next(program.numbers)
    return Function(number, name, [_statement(chance, program) for _ in range(chance.randint(1, 9))])


def _statement(chance: random.Random, program: Program, depth: int = 0) -> Statement:
    number = next(program.numbers)
    kind = chance.random()
    if kind < 0.15 and depth < 2:
        body = [_statement(chance, program, depth + 1) for _ in range(chance.randint(1, 4))]
        return Statement(number, _filled(chance, chance.choice(_HEADERS)), body)
    if kind < 0.3:
        return Statement(number, _filled(chance, chance.choice(_ALONE)))
    if kind < 0.35:
        return Statement(number, _filled(chance, "return {a}"))
    target = chance.choice(_VALUES)
    if kind < 0.55:
        return Statement(number, _filled(chance, f"{target} = self.{chance.choice(_LAYERS)}({{a}})"))
    if kind < 0.7:
        return Statement(number, _filled(chance, f"{target} = {chance.choice(_OPERATORS)}"))
    return Statement(number, _filled(chance, f"{target} = {chance.choice(_CALLS)}"))


def _filled(chance: random.Random, text: str) -> str:
    values = {"a": chance.choice(_VALUES), "b": chance.choice(_VALUES), "n": str(chance.randint(1, 9))}
    return text.format(**values)


# Edits


def _insert(program: Program, chance: random.Random) -> None:
    block = chance.choice(program.blocks())
    block.insert(chance.randint(0, len(block)), _statement(chance, program))


def _delete(program: Program, chance: random.Random) -> None:
    if blocks := [block for block in program.blocks() if block]:
        block = chance.choice(blocks)
        del block[chance.randrange(len(block))]


def _move(program: Program, chance: random.Random) -> None:
    if blocks := [block for block in program.blocks() if block]:
        block = chance.choice(blocks)
        statement = block.pop(chance.randrange(len(block)))
        # Not into itself.
        target = chance.choice(program.blocks())
        target.insert(chance.randint(0, len(target)), statement)


def _swap(program: Program, chance: random.Random) -> None:
    if blocks := [block for block in program.blocks() if len(block) > 1]:
        block = chance.choice(blocks)
        first = chance.randrange(len(block) - 1)
        block[first], block[first + 1] = block[first + 1], block[first]


def _change(program: Program, chance: random.Random) -> None:
    """Edit a statement a little: an argument more, another target, another method, another number."""
    if not (blocks := [block for block in program.blocks() if block]):
        return
    statement = chance.choice(chance.choice(blocks))
    text = statement.text
    _target, equals, value = text.partition(" = ")
    kind = chance.randrange(4)
    if kind == 0 and text.endswith(")"):
        inner = ", scale=2" if text[-2] != "(" else "scale=2"
        statement.text = text[:-1] + inner + ")"
    elif kind == 1 and equals:
        statement.text = f"{chance.choice(_VALUES)} = {value}"
    elif kind == 2:
        statement.text = text.replace(".view(", ".reshape(").replace("transpose(1, 2)", "mT.contiguous()")
    else:
        statement.text = "".join(str(chance.randint(1, 9)) if c.isdigit() and c != "0" else c for c in text)


def _rename_variable(program: Program, chance: random.Random) -> None:
    _, function = chance.choice(program.functions())
    before, after = chance.choice(_VALUES), "renamed"
    pending = [function.body]
    while pending:
        for statement in pending.pop():
            words = "".join(c if c.isalnum() or c == "_" else f"\0{c}\0" for c in statement.text).split("\0")
            statement.text = "".join(after if word == before else word for word in words)
            pending.append(statement.body)


def _wrap(program: Program, chance: random.Random) -> None:
    if blocks := [block for block in program.blocks() if block]:
        block = chance.choice(blocks)
        first = chance.randrange(len(block))
        last = chance.randint(first + 1, len(block))
        header = Statement(next(program.numbers), "with torch.autocast('cuda'):", block[first:last])
        block[first:last] = [header]


def _extract(program: Program, chance: random.Random) -> None:
    """Some statements become a new function that is called in their place."""
    if blocks := [block for block in program.blocks() if block]:
        block = chance.choice(blocks)
        first = chance.randrange(len(block))
        last = min(first + chance.randint(1, 4), len(block))
        number = next(program.numbers)
        program.items.append(Function(number, f"helper_{number}", block[first:last]))
        block[first:last] = [Statement(next(program.numbers), f"x = helper_{number}(x, y)")]


def _rename_function(program: Program, chance: random.Random) -> None:
    _, function = chance.choice(program.functions())
    function.name = f"{function.name}_v{next(program.numbers)}"


def _rename_class(program: Program, chance: random.Random) -> None:
    if classes := [item for item in program.items if isinstance(item, Class)]:
        one = chance.choice(classes)
        one.name = f"{one.name}V{next(program.numbers)}"


def _swap_names(program: Program, chance: random.Random) -> None:
    functions = program.functions()
    if len(functions) > 1:
        (_, a), (_, b) = chance.sample(functions, 2)
        a.name, b.name = b.name, a.name


def _move_function(program: Program, chance: random.Random) -> None:
    functions = program.functions()
    if len(functions) < 2:
        return
    holder, function = chance.choice(functions)
    targets: list[list[Function] | list[Function | Class]] = [program.items]
    targets += [item.methods for item in program.items if isinstance(item, Class)]
    target = chance.choice(targets)
    if all(getattr(other, "name", "") != function.name for other in target if other is not function):
        holder.remove(function)  # pyright: ignore[reportArgumentType]
        target.insert(chance.randint(0, len(target)), function)


def _insert_function(program: Program, chance: random.Random) -> None:
    number = next(program.numbers)
    program.items.insert(chance.randint(0, len(program.items)), _function(chance, program, f"new_{number}"))


def _delete_function(program: Program, chance: random.Random) -> None:
    functions = program.functions()
    if len(functions) > 1:
        holder, function = chance.choice(functions)
        holder.remove(function)  # pyright: ignore[reportArgumentType]


_EDITS: tuple[Callable[[Program, random.Random], None], ...] = (
    _insert, _insert, _insert, _delete, _delete, _delete, _move, _swap, _change, _change, _change, _rename_variable,
    _wrap, _extract, _rename_function, _rename_class, _swap_names, _move_function, _insert_function, _delete_function,
)  # fmt: skip
