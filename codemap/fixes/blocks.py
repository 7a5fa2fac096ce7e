"""Edits of whole statements with libcst: several put under a `with`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from .edits import Patch


def wrap_in_with(patch: Patch, statements: Sequence[ast.stmt], context: str) -> None:
    """Put neighbouring statements under `with <context>:`, one level deeper; their comments go with them.

    libcst does the indenting, so that the lines inside a string are not touched.
    """
    file = patch.outline
    first, last = statements[0], statements[-1]
    lines, starts = file.file.lines, [*file.line_starts, len(file.text)]
    start, end = starts[first.lineno - 1], starts[last.end_lineno or last.lineno]
    indent = file.indentation(first)
    step = "\t" if indent.startswith("\t") or any(line.startswith("\t") for line in lines) else "    "
    text = file.text[start:end].replace("\r\n", "\n")
    ends_line = text.endswith("\n")
    # The statements are parsed as the body of an `if`, which stands for whatever they are indented under.
    body = text if indent else "".join(f"{step}{line}" for line in text.splitlines(keepends=True))
    module = cst.parse_module(f"if 1:\n{body}" if indent else text)
    held = module.body[0].body if indent and isinstance(module.body[0], cst.If) else None
    inner = held.body if isinstance(held, cst.IndentedBlock) else module.body
    wrapper = cst.parse_statement(f"with {context}:\n    pass\n")
    assert isinstance(wrapper, cst.With)
    wrapped = wrapper.with_changes(body=cst.IndentedBlock(inner, indent=step))
    code = cst.Module([], default_indent=indent or step).code_for_node(
        cst.If(cst.Name("x"), cst.IndentedBlock([wrapped], indent=indent)) if indent else wrapped
    )
    code = code.partition("\n")[2] if indent else code
    patch.replace_span(start, end, code if ends_line else code.rstrip("\n"))
