"""Edits of one call with libcst: keyword arguments added, replaced or taken out, comments and layout kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import libcst as cst

_WIDE = 110
"""A call that would become longer than this gets its new arguments on a line of their own."""


def parse(segment: str) -> cst.BaseExpression:
    """An expression's text (which may run over lines) as a libcst node. Raises `cst.ParserSyntaxError`."""
    # In brackets, as the text may come from inside some and run over lines.
    return cst.parse_expression(f"({segment})", cst.PartialParserConfig(default_newline="\n"))


def render(node: cst.BaseExpression) -> str:
    """The text of what `parse` gave, changed or not."""
    return cst.Module([], default_newline="\n").code_for_node(node)[1:-1]


def edit_call(
    segment: str,
    add: Mapping[str, str] | None = None,
    *,
    drop: Collection[str] = (),
    drop_positions: Collection[int] = (),
    column: int = 0,
) -> str:
    """A call's text with keyword arguments set and dropped; its lines end in "\\n" whatever they ended in before.

    `column` is where the call begins on its line (from 0): it decides whether the result still fits the line.
    """
    call = parse(segment.replace("\r\n", "\n"))
    assert isinstance(call, cst.Call)
    new = dict(add or {})
    args: list[cst.Arg] = []
    for position, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword else ""
        if name in drop or position in drop_positions:
            continue
        args.append(arg.with_changes(value=cst.parse_expression(new.pop(name))) if name in new else arg)
    if len(args) < len(call.args):
        args = _close(args, call.args[-1])
    before = len(args)
    if new:
        args = _append(call, args, new)
    text = render(call.with_changes(args=args))
    if new and before and "\n" not in text and column + len(text) > _WIDE:
        return _wrapped(call, args, len(new), column)
    return text


def _close(args: list[cst.Arg], last: cst.Arg) -> list[cst.Arg]:
    """After the last argument went: end the list as it ended before."""
    if not args:
        return args
    return [*args[:-1], args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)]


def _append(call: cst.Call, args: list[cst.Arg], new: Mapping[str, str]) -> list[cst.Arg]:
    added = [_keyword(name, value) for name, value in new.items()]
    if not args:
        return _joined(added, cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    separator = _separator(call, args)
    last = args[-1]
    if isinstance(last.comma, cst.Comma):
        # The trailing comma and the way to the bracket move behind the new last argument; its comment stays.
        tail = last.comma
        between = separator.with_changes(whitespace_after=_with_comment(separator.whitespace_after, tail))
        end = tail.with_changes(whitespace_after=_without_comment(tail.whitespace_after))
        return [*args[:-1], last.with_changes(comma=between), *_joined(added, separator, end)]
    tail_space = last.whitespace_after_arg
    between = separator
    if _comment_of(tail_space) is not None:
        between = separator.with_changes(whitespace_after=_moved_comment(separator.whitespace_after, tail_space))
    first = last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace(""))
    closing = added[-1].with_changes(whitespace_after_arg=_without_comment(tail_space))
    return [*args[:-1], first, *_joined([*added[:-1], closing], separator)]


def _keyword(name: str, value: str) -> cst.Arg:
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(cst.parse_expression(value), keyword=cst.Name(name), equal=tight)


def _joined(args: list[cst.Arg], separator: cst.Comma, end: cst.Comma | None = None) -> list[cst.Arg]:
    inner = [arg.with_changes(comma=separator) for arg in args[:-1]]
    return [*inner, args[-1].with_changes(comma=end) if end else args[-1]]


def _separator(call: cst.Call, args: list[cst.Arg]) -> cst.Comma:
    """Arguments one per line stay one per line; else new ones follow on the same line."""
    spaces = [arg.comma.whitespace_after for arg in args[:-1] if isinstance(arg.comma, cst.Comma)]
    one_a_line = [space for space in spaces if isinstance(space, cst.ParenthesizedWhitespace)]
    if spaces and len(one_a_line) == len(spaces):
        return cst.Comma(whitespace_after=_fresh(one_a_line[-1]))
    if not spaces and isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        return cst.Comma(whitespace_after=_fresh(call.whitespace_before_args))
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _fresh(space: cst.ParenthesizedWhitespace) -> cst.ParenthesizedWhitespace:
    """The same indentation without comments and empty lines."""
    return cst.ParenthesizedWhitespace(indent=space.indent, last_line=space.last_line)


def _comment_of(space: cst.BaseParenthesizableWhitespace) -> cst.Comment | None:
    return space.first_line.comment if isinstance(space, cst.ParenthesizedWhitespace) else None


def _without_comment(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    if not isinstance(space, cst.ParenthesizedWhitespace) or space.first_line.comment is None:
        return space
    first = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return space.with_changes(first_line=first)


def _with_comment(space: cst.BaseParenthesizableWhitespace, comma: cst.Comma) -> cst.BaseParenthesizableWhitespace:
    return _moved_comment(space, comma.whitespace_after)


def _moved_comment(
    space: cst.BaseParenthesizableWhitespace, source: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """`space` carrying the end-of-line comment of `source`; a comment needs the line break it ended."""
    if not isinstance(source, cst.ParenthesizedWhitespace) or source.first_line.comment is None:
        return space
    if isinstance(space, cst.ParenthesizedWhitespace):
        return space.with_changes(first_line=source.first_line)
    return source.with_changes(empty_lines=[])


def _wrapped(call: cst.Call, args: list[cst.Arg], count: int, column: int) -> str:
    """The call with its new arguments on a second line, aligned with the first argument."""
    head = render(call.with_changes(args=[]))
    # The argument list opens before the call's last bracket: `f(` of `f()`.
    indent = " " * (column + head.rindex(")"))
    space = cst.ParenthesizedWhitespace(last_line=cst.SimpleWhitespace(indent))
    before = args[-count - 1].with_changes(comma=cst.Comma(whitespace_after=space))
    return render(call.with_changes(args=[*args[: -count - 1], before, *args[-count:]]))
