"""The workspace on disk: what it lists, what it reads, and what it must never open."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from torchtraceap.codemap.disk import ReadLimits
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.source import parse_source, split_lines


def write(root: Path, path: str, text: str = "x = 1\n") -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def test_lists_python_files_and_leaves_out_what_is_not_the_projects(tmp_path: Path) -> None:
    for path in (
        "a.py",
        "pkg/b.py",
        "pkg/notes.txt",
        ".git/c.py",
        "lib/site-packages/d.py",
        "gen/e.py",
        "pkg/tmp_f.py",
    ):
        write(tmp_path, path)
    write(tmp_path, "myenv/lib/g.py")
    write(tmp_path, "myenv/pyvenv.cfg", "")
    write(tmp_path, ".gitignore", "/gen/\n")
    write(tmp_path, "pkg/.gitignore", "tmp_*\n")
    assert open_workspace(tmp_path).paths() == ("a.py", "pkg/b.py")


def test_an_inner_gitignore_can_take_back_a_file(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore", "*_pb2.py\n")
    write(tmp_path, "keep/.gitignore", "!*_pb2.py\n")
    write(tmp_path, "keep/a_pb2.py")
    write(tmp_path, "b_pb2.py")
    assert open_workspace(tmp_path).paths() == ("keep/a_pb2.py",)


def test_nothing_outside_the_root_is_opened(tmp_path: Path) -> None:
    write(tmp_path, "secret.py")
    root = tmp_path / "root"
    write(root, "inner/a.py")
    (root / "link.py").symlink_to(tmp_path / "secret.py")
    (root / "folder").symlink_to(tmp_path, target_is_directory=True)
    (root / "loop").symlink_to(root / "loop")
    (root / "alias.py").symlink_to(root / "inner" / "a.py")
    workspace = open_workspace(root)
    for path in (
        "../secret.py",
        str(tmp_path / "secret.py"),
        "link.py",
        "folder/secret.py",
        "loop/a.py",
        "inner",
        "\0",
    ):
        assert workspace.file(path) is None, path
    assert workspace.file("alias.py") is not None
    assert "folder/secret.py" not in workspace.paths()


def test_a_pipe_or_a_huge_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    write(tmp_path, "big.py", "#" * 100)
    workspace = open_workspace(tmp_path, limits=ReadLimits(file_bytes=50))
    assert workspace.file("pipe.py") is None
    assert workspace.file("big.py") is None


def test_unsaved_text_wins_over_the_disk(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "def old(): pass\n")
    file = open_workspace(tmp_path, {"a.py": "def new(): pass\n", "unsaved.py": ""}).file("a.py")
    assert file is not None and [f.name for f in file.functions] == ["<module>", "new"]
    assert open_workspace(tmp_path, {"unsaved.py": ""}).paths() == ("a.py", "unsaved.py")


@pytest.mark.parametrize(
    "data", [b"# -*- coding: latin-1 -*-\ns = '\xe9'\n", b"\xef\xbb\xbfs = '\xc3\xa9'\n", "s = 'é'\n".encode()]
)
def test_encodings_are_python_s_own(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.py").write_bytes(data)
    file = open_workspace(tmp_path).file("a.py")
    assert file is not None and file.error == "" and "s = 'é'" in file.lines


@pytest.mark.parametrize("data", [b"s = '\xff'\n", b"# coding: nonsense\n", b"def f(:\n", b"x\0y", b"(" * 5000])
def test_what_is_no_python_has_no_tree_and_says_why(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.py").write_bytes(data)
    file = open_workspace(tmp_path).file("a.py")
    assert file is not None and file.tree is None and file.functions == () and file.error


@pytest.mark.parametrize(
    "deepen",
    [
        lambda depth: "x = 1" + " + a" * depth,
        lambda depth: "x = a" + ".b" * depth,
        lambda depth: "x = " + "not " * depth + "a",
        lambda depth: "if a:\n    pass\n" + "elif b:\n    pass\n" * depth,
    ],
)
def test_what_recursion_could_not_walk_has_no_tree(deepen: Callable[[int], str]) -> None:
    file = parse_source("a.py", deepen(150))
    assert file.tree is not None and not file.error
    file = parse_source("a.py", deepen(500))
    assert file.tree is None and file.error.startswith("nested deeper than")
    assert parse_source("a.py", deepen(100_000)).error


def test_lines_part_where_python_parts_them() -> None:
    assert split_lines("a\x0cb\u2028c\r\nd\re\n") == ("a\x0cb\u2028c", "d", "e", "")


def test_functions_know_their_decorator_line_and_owner() -> None:
    file = parse_source(
        "a.py",
        "import torch\n\nclass Net:\n    @torch.no_grad()\n    def forward(self):\n        def inner(): pass\n"
        "        return (lambda: inner())()\n",
    )
    assert [(f.qualname, f.first_line, f.end_line) for f in file.functions[1:]] == [
        ("Net.forward", 4, 7),
        ("Net.forward.inner", 6, 6),
        ("Net.forward.<lambda>", 7, 7),
    ]
    at_six = file.function_at(6)
    assert at_six is not None and at_six.qualname == "Net.forward.inner"


def test_columns_count_code_points() -> None:
    file = parse_source("a.py", "s = 'é'; t = 1\n")
    assert file.tree is not None
    assert file.column(1, file.tree.body[1].col_offset) == file.lines[0].index("t = 1") + 1


def test_a_file_whose_name_is_no_text_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "täst.py")
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.py")).write_text("x = 1\n")
    except OSError:
        pytest.skip("this file system takes only text")
    assert open_workspace(tmp_path).paths() == ("täst.py",)
