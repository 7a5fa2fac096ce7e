from __future__ import annotations

import ast
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from torchtraceap.codemap.edits import apply_to_files
from torchtraceap.codemap.fixes.edits import Patch
from torchtraceap.codemap.fixes.outline import Outline, outline
from torchtraceap.codemap.project import open_workspace


def outline_of(text: str) -> Outline:
    found = outline(open_workspace(Path("none"), {"m.py": text}).file("m.py"))
    assert found is not None
    return found


def edited(patch: Patch) -> str:
    return apply_to_files({"m.py": patch.outline.text}, patch.edits())["m.py"]


@given(
    st.lists(st.sampled_from(["a = 'é🧪'", "\x0cb = 1", "c = 2  # \u2028 x", "", "\td = 3".strip()]), min_size=1),
    st.data(),
)
def test_a_replacement_lands_on_its_node_whatever_ends_the_lines(lines: list[str], data: st.DataObject):
    newline = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = newline.join(lines)
    file = outline_of(text)
    numbers = [node for node in ast.walk(file.tree) if isinstance(node, ast.Constant)]
    if not numbers:
        return
    node = data.draw(st.sampled_from(numbers))
    patch = Patch(file)
    start, end = file.span(node)
    assert ast.literal_eval(text[start:end]) == node.value
    patch.replace(node, "99")
    assert edited(patch) == text[:start] + "99" + text[end:]


def test_an_edit_is_as_small_as_the_change():
    patch = Patch(outline_of("x = call(first, second)\n"))
    patch.replace_span(4, 23, "call(first, other, second)")
    (edit,) = patch.edits()
    assert (edit.column, edit.end_column, edit.new_text) == (17, 17, "other, ")


def test_new_lines_end_as_the_file_does():
    patch = Patch(outline_of("x = 1\r\ny = 2\r\n"))
    patch.insert_line_after(patch.outline.tree.body[0], "z = 3")
    patch.replace(patch.outline.tree.body[1], "(\n2\n)")
    assert edited(patch) == "x = 1\r\nz = 3\r\n(\r\n2\r\n)\r\n"


def test_a_line_behind_the_last_one_of_a_file_without_line_end():
    patch = Patch(outline_of("def f():\n    x = 1"))
    patch.insert_line_after(patch.outline.statements[-1], "y = 2")
    assert edited(patch) == "def f():\n    x = 1\n    y = 2"


def test_deleted_statements_leave_no_double_blank_lines_and_no_comment_goes_that_stands_alone():
    text = "def f():\n    a = 1\n\n    # kept\n    b = (\n        2\n    )  # gone\n\n    c = 3\n"
    file = outline_of(text)
    patch = Patch(file)
    function = file.tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    patch.delete(function.body[:2])
    assert edited(patch) == "def f():\n    # kept\n\n    c = 3\n"


def test_edits_of_several_files_are_applied_from_the_end():
    texts = {"m.py": "a = 1; b = 2\n", "n.py": "c = 3\n"}
    first, second = Patch(outline_of(texts["m.py"])), outline_of(texts["m.py"])
    statements = second.tree.body
    first.replace(statements[0], "a = 10")
    first.replace(statements[1], "b = 20")
    assert apply_to_files(texts, first.edits()) == {"m.py": "a = 10; b = 20\n", "n.py": "c = 3\n"}
