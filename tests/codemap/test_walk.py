"""Which files a workspace has: every real one once, whatever links there are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.walk import walk


def write(root: Path, path: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("x = 1\n")


def listed(root: Path) -> list[str]:
    return sorted(each.path for each in walk(root.resolve()))


def test_a_linked_folder_inside_adds_no_second_name(tmp_path: Path) -> None:
    write(tmp_path, "src/net.py")
    (tmp_path / "alias").symlink_to(tmp_path / "src", target_is_directory=True)
    (tmp_path / "net.py").symlink_to(tmp_path / "src" / "net.py")
    assert listed(tmp_path) == ["src/net.py"]
    assert open_workspace(tmp_path).file("alias/net.py") is not None, "a trace may name it by the link"


def test_what_has_no_name_of_its_own_is_named_by_its_link(tmp_path: Path) -> None:
    write(tmp_path, ".store/v1/net.py")
    write(tmp_path, ".store/v1/deep/er.py")
    (tmp_path / "current").symlink_to(".store/v1")
    (tmp_path / "second").symlink_to(".store/v1")
    assert listed(tmp_path) == ["current/deep/er.py", "current/net.py"]


def test_a_link_to_an_environment_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, ".venv/lib/site-packages/torch/nn.py")
    (tmp_path / "torch").symlink_to(".venv/lib/site-packages/torch")
    assert listed(tmp_path) == []


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "outside/secret.py")
    root = tmp_path / "root"
    write(root, "a.py")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to("..")
    (root / "secret.py").symlink_to(tmp_path / "outside" / "secret.py")
    (root / "gone.py").symlink_to("nothing")
    assert listed(root) == ["a.py"]


def test_circles_of_links_end(tmp_path: Path) -> None:
    write(tmp_path, "pkg/a.py")
    (tmp_path / "pkg" / "self").symlink_to(tmp_path / "pkg")
    (tmp_path / "pkg" / "root").symlink_to(tmp_path)
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    write(tmp_path, ".hidden/b.py")
    (tmp_path / ".hidden" / "again").symlink_to(tmp_path / ".hidden")
    (tmp_path / "shown").symlink_to(".hidden")
    assert listed(tmp_path) == ["pkg/a.py", "shown/b.py"]


def test_a_root_that_is_a_link_is_the_folder_itself(tmp_path: Path) -> None:
    write(tmp_path, "real/a.py")
    (tmp_path / "link").symlink_to("real")
    workspace = open_workspace(tmp_path / "link")
    assert workspace.paths() == ("a.py",) and workspace.root == (tmp_path / "real").resolve()
    assert workspace.file("a.py") is not None


def test_folders_may_be_deeper_than_calls_can_be(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    depth = 1500
    try:
        for _ in range(depth):
            os.mkdir("d", dir_fd=here)
            inner = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
        os.close(os.open("a.py", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        assert listed(tmp_path) == ["d/" * depth + "a.py"]
    finally:
        os.close(here)
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)  # pytest's own clearing away would recurse too deep


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "shut/a.py")
    write(tmp_path, "b.py")
    (tmp_path / "shut").chmod(0)
    try:
        assert listed(tmp_path) == ["b.py"]
    finally:
        (tmp_path / "shut").chmod(0o700)


def test_names_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"\xff.py")).write_text("")
    except OSError:
        pytest.skip("this file system takes only text")
    write(tmp_path, "a.py")
    assert listed(tmp_path) == ["a.py"]


def test_notebooks_are_listed_and_pipes_are_not(tmp_path: Path) -> None:
    write(tmp_path, "nb.ipynb")
    write(tmp_path, ".ipynb_checkpoints/nb.ipynb")
    os.mkfifo(tmp_path / "pipe.py")
    assert listed(tmp_path) == ["nb.ipynb"]


def test_the_innermost_gitignore_decides(tmp_path: Path) -> None:
    write(tmp_path, "gen/keep/a.py")
    write(tmp_path, "gen/b.py")
    (tmp_path / ".gitignore").write_text("b.py\n*_pb2.py\n")
    (tmp_path / "gen" / "keep" / ".gitignore").write_text("!a_pb2.py\n")
    write(tmp_path, "gen/keep/a_pb2.py")
    assert listed(tmp_path) == ["gen/keep/a.py", "gen/keep/a_pb2.py"]
