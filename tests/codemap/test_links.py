"""Workspaces behind links: the root itself, a package inside it, and links that lead out."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtraceap.codemap.git import blob_hash
from torchtraceap.codemap.project import open_workspace
from torchtraceap.codemap.statements import Place

from .test_drift import EDITED, commit, located
from .test_locate import MODEL, write


@pytest.mark.parametrize("recorded", ["{link}/src/model.py", "{real}/src/model.py", "src/model.py", "model.py"])
def test_a_root_that_is_a_link(tmp_path: Path, recorded: str) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    commit(write(real, src__model=MODEL))
    write(real, src__model=EDITED)
    link.symlink_to(real, target_is_directory=True)
    found = located(link, "matmul", file=recorded.format(link=link, real=real))
    assert isinstance(found, Place) and (found.location.path, found.location.line) == ("src/model.py", 15)


@pytest.mark.parametrize("text", [MODEL, EDITED])
def test_a_package_that_is_a_link_into_the_root(tmp_path: Path, text: str) -> None:
    """The recorded name goes through the link; the file is shown where it is."""
    write(tmp_path, packages__net__model=text)
    (tmp_path / "net").symlink_to(tmp_path / "packages" / "net", target_is_directory=True)
    for recorded in ("net/model.py", f"{tmp_path}/net/model.py"):
        found = located(tmp_path, "matmul", file=recorded)
        assert isinstance(found, Place) and found.location.path == "packages/net/model.py"


def test_a_package_that_is_a_link_under_another_name(tmp_path: Path) -> None:
    write(tmp_path, packages__net__model=EDITED, other__model="def main():\n    pass\n")
    (tmp_path / "alias").symlink_to(tmp_path / "packages" / "net", target_is_directory=True)
    found = located(tmp_path, "matmul", file="alias/model.py")
    assert isinstance(found, Place) and found.location.path == "packages/net/model.py"


def test_a_link_that_leads_out_is_not_read(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(outside, net__model=MODEL)
    commit(write(root, readme="x = 1\n"))
    (root / "net").symlink_to(outside / "net", target_is_directory=True)
    sources = {f"{root}/net/model.py": blob_hash(MODEL)}
    assert located(root, "matmul", file=f"{root}/net/model.py", sources=sources) is None
    assert open_workspace(root).text("net/model.py") is None
