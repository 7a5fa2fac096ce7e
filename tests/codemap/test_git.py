"""Reading repositories: what they hold, and that a hostile one runs nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from torchtraceap.codemap.git import blob_hash, blob_hashes, open_repository

from .test_drift import RECORDED_S, commit, git

NS = 10**9


def test_contents_by_hash_and_by_time(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    commit(tmp_path, at_s=RECORDED_S)
    (tmp_path / "a.py").write_text("x = 2\n")
    git(tmp_path, "commit", "-q", "-a", "-m", "b", at_s=RECORDED_S + 100)
    (tmp_path / "a.py").write_text("x = 3\n")
    repository = open_repository(tmp_path)
    assert repository is not None
    first, second = blob_hash("x = 1\n"), blob_hash("x = 2\n")
    assert repository.texts([first, second, blob_hash("x = 3\n"), "no hash", "--help"]) == {
        first: "x = 1\n",
        second: "x = 2\n",
    }
    at, after = repository.commit_at((RECORDED_S + 50) * NS), repository.commit_after((RECORDED_S + 50) * NS)
    assert at is not None and after == repository.head()
    assert (repository.files(at), repository.files(str(after))) == ({"a.py": first}, {"a.py": second})
    assert repository.commit_at(0) is None and repository.commit_at(2**80) is None
    assert repository.holds("a.py") and not repository.holds("b.py")


def test_the_log_of_head_knows_what_was_checked_out(tmp_path: Path) -> None:
    """Another branch was checked out at the time than the one whose history is looked at now."""
    (tmp_path / "a.py").write_text("x = 1\n")
    commit(tmp_path, at_s=RECORDED_S)
    git(tmp_path, "checkout", "-q", "-b", "side", at_s=RECORDED_S + 10)
    (tmp_path / "a.py").write_text("x = 2\n")
    git(tmp_path, "commit", "-q", "-a", "-m", "side", at_s=RECORDED_S + 20)
    git(tmp_path, "checkout", "-q", "main", at_s=RECORDED_S + 100)
    repository = open_repository(tmp_path)
    assert repository is not None
    commits = [repository.commit_at((RECORDED_S + seconds) * NS) for seconds in (50, 200)]
    assert [repository.files(str(one))["a.py"] for one in commits] == [blob_hash("x = 2\n"), blob_hash("x = 1\n")]


def test_a_folder_below_the_top_sees_only_itself(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.py").write_text("x = 1\n")
    (tmp_path / "secret.py").write_text("y = 1\n")
    commit(tmp_path)
    repository = open_repository(tmp_path / "sub")
    assert repository is not None and list(repository.files(str(repository.head()))) == ["a.py"]
    assert repository.holds("a.py") and not repository.holds("secret.py")


def test_where_there_is_no_repository_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_repository(tmp_path) is None
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    assert open_repository(tmp_path) is None
    (tmp_path / ".git").unlink()
    git(tmp_path, "init", "-q")
    repository = open_repository(tmp_path)
    assert repository is not None and repository.head() is None and repository.commit_at(RECORDED_S * NS) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert open_repository(tmp_path) is None


def test_a_hostile_repository_runs_nothing(tmp_path: Path) -> None:
    """Its configuration names programs for everything; a missing object would be fetched by one of them."""
    root, mark = tmp_path / "root", tmp_path / "ran"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    commit(root)
    run = tmp_path / "run.sh"
    run.write_text(f"#!/bin/sh\ntouch {mark}\n")
    run.chmod(0o755)
    settings = {
        "core.fsmonitor": str(run), "core.pager": str(run), "core.sshCommand": str(run), "diff.external": str(run),
        "log.showSignature": "true", "gpg.program": str(run), "protocol.ext.allow": "always",
        "protocol.allow": "always", "remote.origin.url": f"ext::{run}", "remote.origin.promisor": "true",
        "extensions.partialClone": "origin", "core.hooksPath": str(tmp_path), "alias.cat-file": f"!{run}",
    }  # fmt: skip
    for name, value in settings.items():
        git(root, "config", name, value)
    git(root, "config", "core.repositoryformatversion", "1")
    lost = blob_hash("lost = 1\n")
    with_plain_git = subprocess.run(["git", "cat-file", "-p", lost], cwd=root, capture_output=True, check=False)
    assert with_plain_git.returncode != 0 and mark.exists(), "the trap is set"
    mark.unlink()
    repository = open_repository(root)
    assert repository is not None
    assert repository.texts([lost]) == {} and repository.holds("a.py")
    assert repository.commit_at(RECORDED_S * NS) and repository.files(str(repository.head()))
    repository.commit_after(0)
    assert not mark.exists()


def test_hashes_are_git_s(tmp_path: Path) -> None:
    for content in (b"x = 1\r\ny = 2\r\n", b"\xef\xbb\xbfx = 1\n", "é = '😋'\n".encode(), b""):
        (tmp_path / "a.py").write_bytes(content)
        git(tmp_path, "init", "-q")
        assert git(tmp_path, "hash-object", "--no-filters", "a.py") in blob_hashes(content.decode("utf-8-sig"))
