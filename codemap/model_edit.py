"""Whether a function as a language model rewrote it may be offered as an edit.

Nothing of it is run, neither here nor in a test of equal results: running what a model wrote, steered perhaps by what
it read, would let a trace or a comment run code on the user's machine. What can be told from the text is checked, and
the edit is always unsafe: a person looks at it and applies it.

New names are held against a list of what is harmless, not against one of what is not: an edit may use what the function
used before, what it makes itself, plain built-ins, and modules that only compute.
"""

from __future__ import annotations

import ast
import builtins
import re
from textwrap import dedent

from ..analyzer.diagnosis.answer import LONGEST_EDIT
from ..analyzer.diagnosis.diagnose import Refusal
from ..analyzer.diagnosis.dossier import Excerpt
from ..analyzer.findings import Fix, Safety, TextEdit
from .edits import EditError, apply_edits
from .excerpts import dedented
from .source import Function, SourceFile, parse_source

_PREFIX = "model/"
_MOST_GROWTH = 2
_MOST_NEW_LINES = 20
_COMPUTING = frozenset({"torch", "math", "itertools", "functools", "contextlib", "collections", "typing", "numpy"})
"""Modules whose names an edit may bring in, but for those below."""
_TOUCHING = frozenset(
    re.findall(
        r"\w+",
        """
        save load hub package serialization multiprocessing distributed cpp_extension load_inline from_file frombuffer
        fromfile tofile memmap loadtxt savetxt genfromtxt savez savez_compressed ctypeslib f2py distutils testing os
        sys subprocess system popen spawn run_path jit classes ops library utils onnx export profiler monitor fx
        modules write writelines write_text write_bytes read_text read_bytes unlink rmdir rmtree mkdir rename connect
        remove kill fork execv popen importlib inspect builtins shutil pathlib Path socket pickle tempfile glob
        platform threading ctypes io zipfile urllib requests http runpy posix eval exec warnings urlopen urlretrieve
        request load_state_dict_from_url download_url_to_file
        """,
    )
)
"""Attributes that lead to files, processes, the network or compiled code, by way of modules that compute too."""
_HARMLESS = frozenset(
    re.findall(
        r"\w+",
        """
        abs all any bool dict divmod enumerate filter float frozenset int isinstance iter len list map max min next
        object pow range reversed round set slice sorted str sum super tuple zip AssertionError IndexError KeyError
        RuntimeError TypeError ValueError StopIteration Exception NotImplementedError True False None
        """,
    )
)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def check_edit(source: Excerpt, slug: str, text: str, proposed: str) -> Fix | Refusal:
    """The fix that replaces the function of `source` in its file's `text` by the one proposed, or why there is none."""
    file = parse_source(source.path, text)
    if file.tree is None:
        return Refusal(f"{source.path} cannot be parsed")
    function = _function(file, source)
    if function is None:
        return Refusal("the function has changed since, is too long to be rewritten, or is none")
    if len(proposed) > LONGEST_EDIT:
        return Refusal(f"it is longer than {LONGEST_EDIT} characters")
    written = dedent(proposed.strip("\r\n")).rstrip()
    edit = parse_source(source.path, written + "\n")
    if edit.tree is None:
        return Refusal(f"it is no Python: {edit.error}")
    old, body = function.node, edit.tree.body
    new = body[0] if len(body) == 1 else None
    if not isinstance(old, _Definition) or not isinstance(new, _Definition):
        return Refusal("it is not one function")
    why = _head_differs(old, new) or _length_differs(function, edit) or _body_differs(old, new, file.tree)
    if why:
        return Refusal(why)
    return _fix(file, function, edit, new, slug)


def _function(file: SourceFile, source: Excerpt) -> Function | None:
    """The function that the excerpt quotes, if it still reads so and is quoted whole."""
    last = source.first_line + len(source.lines) - 1
    found = (
        one
        for one in file.functions
        if (one.qualname, one.first_line, one.end_line) == (source.qualname, source.first_line, last)
    )
    function = next(found, None)
    lines = file.lines[source.first_line - 1 : last]
    return function if dedented(lines) == dedented(source.lines) else None


def _head_differs(old: _Definition, new: _Definition) -> str:
    if type(old) is not type(new) or old.name != new.name:
        return f"it is not the function {old.name}"
    if ast.dump(old.args) != ast.dump(new.args) or _dumped(old.returns) != _dumped(new.returns):
        return "it changes the signature"
    if list(map(ast.dump, old.decorator_list)) != list(map(ast.dump, new.decorator_list)):
        return "it changes the decorators"
    return ""


def _length_differs(function: Function, edit: SourceFile) -> str:
    lines = function.end_line - function.first_line + 1
    most = max(_MOST_GROWTH * lines, lines + _MOST_NEW_LINES)
    return f"it is longer than {most} lines" if len(edit.lines) - 1 > most else ""


def _body_differs(old: _Definition, new: _Definition, tree: ast.Module) -> str:
    """What of the body is not as it may be; "" if all is."""
    if ast.dump(old) == ast.dump(new):
        return "it changes nothing"
    if lost := _kept(old) - _kept(new):
        return f"it no longer sets {min(lost)}, which others may use"
    if added := _shared(new) - _shared(old):
        return f"it sets {min(added)} outside the function"
    if _yields(old) != _yields(new):
        return "it changes whether the function is a generator"
    if _returns(old) and not _returns(new):
        return "it no longer returns anything"
    imported = _modules(tree) | _modules(old)
    if any(module not in _COMPUTING and imported.get(name) != module for name, module in _modules(new).items()):
        return "it imports what was not imported before"
    known = {name for name, module in (imported | _modules(new)).items() if module in _COMPUTING}
    # A name that is bound in an inner scope may still be the module's or Python's in the outer one.
    bound = _bound(new) - _bound(tree, inner=False) - set(dir(builtins))
    strange = _names(new) - _names(old) - _parameters(old) - bound - known - _HARMLESS
    if strange:
        kind = "built-in " if hasattr(builtins, min(strange)) else ""
        return f"it uses the {kind}name {min(strange)}, which the function did not use before"
    reached = {one for one in _attributes(new) - _attributes(old) if one in _TOUCHING or one.startswith("_")}
    return f"it reaches for {min(reached)}, which the function did not before" if reached else ""


def _fix(file: SourceFile, function: Function, edit: SourceFile, new: _Definition, slug: str) -> Fix | Refusal:
    """The edit at the function's place and indentation, tried on the text."""
    first = file.lines[function.first_line - 1]
    indent = first[: len(first) - len(first.lstrip())]
    last = file.lines[function.end_line - 1]
    end = file.column(function.end_line, getattr(function.node, "end_col_offset", 0))
    if last[end - 1 :].strip().startswith(";"):
        return Refusal("another statement stands on the function's last line")
    inside = _inside_strings(new)
    lines = [line if not line or number in inside else indent + line for number, line in enumerate(edit.lines[:-1], 1)]
    change = TextEdit(file.path, function.first_line, 1, function.end_line, end, "\n".join(lines))
    try:
        after = parse_source(file.path, apply_edits(file.text, [change]))
    except EditError as error:
        return Refusal(f"it does not fit into {file.path}: {error}")
    placed = next((one for one in after.functions if one.qualname == function.qualname), None)
    if placed is None or _undocumented(placed.node) != _undocumented(new):
        return Refusal(f"it does not fit into {file.path}")
    title = f"Use the model's rewrite of {function.name} (check results)"
    return Fix(_PREFIX + slug, title, Safety.UNSAFE, (change,))


def _inside_strings(new: _Definition) -> set[int]:
    """Lines that begin inside a string: an indentation would change it. A docstring's may be indented."""
    strings = [one for one in ast.walk(new) if isinstance(one, (ast.Constant, ast.JoinedStr)) and not _is_doc(one, new)]
    return {line for one in strings for line in range(one.lineno + 1, (one.end_lineno or one.lineno) + 1)}


def _is_doc(string: ast.expr, new: _Definition) -> bool:
    first = new.body[0]
    return isinstance(first, ast.Expr) and first.value is string


def _undocumented(node: ast.AST) -> str:
    """A function without the text of its docstring."""
    body = getattr(node, "body", [])
    is_documented = isinstance(node, _Definition) and ast.get_docstring(node) is not None
    return "\n".join(map(ast.dump, body[1:] if is_documented else body))


def _dumped(node: ast.AST | None) -> str:
    return ast.dump(node) if node is not None else ""


def _kept(function: _Definition) -> set[str]:
    """What a function sets beyond itself: attributes of `self`, and names outside."""
    return _shared(function) | {
        ast.unparse(one)
        for one in ast.walk(function)
        if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store)
        and isinstance(one.value, ast.Name)
        and one.value.id == "self"
    }


def _shared(function: _Definition) -> set[str]:
    """Names that it calls global or nonlocal."""
    return {name for one in ast.walk(function) if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}


def _yields(function: _Definition) -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(function))


def _returns(function: _Definition) -> bool:
    return any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(function))


def _modules(node: ast.AST) -> dict[str, str]:
    """The names that imports bind, each with the root of the module that it comes from; "" for what touches
    more than memory, and for what is relative."""
    found: dict[str, str] = {}
    for one in ast.walk(node):
        if isinstance(one, ast.Import):
            paths = [(each.asname or each.name.partition(".")[0], each.name) for each in one.names]
        elif isinstance(one, ast.ImportFrom):
            origin = "." * one.level + (one.module or "")
            paths = [(each.asname or each.name, f"{origin}.{each.name}") for each in one.names]
        else:
            continue
        for name, path in paths:
            parts = path.split(".")
            found[name] = "" if _TOUCHING.intersection(parts) else parts[0]
    return found


def _names(function: _Definition) -> set[str]:
    return {one.id for one in ast.walk(function) if isinstance(one, ast.Name)}


def _parameters(function: _Definition) -> set[str]:
    return {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}


def _bound(node: ast.AST, *, inner: bool = True) -> set[str]:
    """Names that a node's code gives a value; those of the functions and classes in it only if `inner`."""
    names = set(_modules(node))
    pending = list(ast.iter_child_nodes(node))
    while pending:
        one = pending.pop()
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            names.add(one.id)
        elif isinstance(one, ast.arg):
            names.add(one.arg)
        elif isinstance(one, ast.ExceptHandler) and one.name:
            names.add(one.name)
        elif isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(one.name)
            if not inner:
                continue
        pending += ast.iter_child_nodes(one)
    return names


def _attributes(function: _Definition) -> set[str]:
    return {one.attr for one in ast.walk(function) if isinstance(one, ast.Attribute)}
