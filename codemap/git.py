"""What a file held at another time, read from the repository that the workspace lies in.

By the `git` program: it knows every form of repository (packs, work trees, alternates, SHA-256, reftables), checks that
the repository belongs to the user, and where there is a repository there is git. A library would be one dependency more
for what is asked here, which is the content of a few objects.

A repository is data from outside, and its configuration can name programs to run. Only commands are used that run none
(`cat-file`, `rev-parse`, `rev-list`, `ls-tree`); that objects are not fetched, whatever the configuration says, is made
sure by forbidding every transport. Nothing is written, no lock is taken. Whatever fails gives no answer, and no error.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from .source import decode

TIMEOUT_S = 5.0
_MOST_BYTES = 4_000_000
"""Larger files are not read from the workspace either."""
_MOST_LISTED = 200_000_000
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never",
         "-c", "core.pager=cat")  # fmt: skip


class Repository:
    """The repository around a folder. Paths are relative to that folder, with "/"; nothing outside it is named."""

    def __init__(self, root: Path, program: str, prefix: str) -> None:
        self._root = root
        self._program = program
        self._prefix = prefix
        """The folder's path in the repository: "" or ending in "/"."""
        self._texts: dict[str, str | None] = {}
        self._trees: dict[str, Mapping[str, str]] = {}

    def texts(self, blobs: Iterable[str]) -> Mapping[str, str]:
        """The texts of those of `blobs` that the repository has."""
        wanted = list(dict.fromkeys(blob for blob in blobs if _HASH.fullmatch(blob)))
        missing = [blob for blob in wanted if blob not in self._texts]
        if missing:
            self._texts.update(dict.fromkeys(missing))
            # What is too large is found out before it is read.
            answer = self._run("cat-file", "--batch-check", given=missing)
            sizes = (line.split() for line in answer.decode("ascii", "replace").splitlines())
            small = [s[0] for s in sizes if len(s) == 3 and s[1] == "blob" and int(s[2]) <= _MOST_BYTES]
            self._texts.update(_batch(self._run("cat-file", "--batch", given=small)) if small else {})
        return {blob: text for blob in wanted if (text := self._texts[blob]) is not None}

    def commit_at(self, time_ns: int) -> str | None:
        """The commit that was checked out at a time (unix, ns), by the log of HEAD where it goes back that far, else
        the last one on HEAD's branch from before."""
        time_s = time_ns // 1_000_000_000
        if not 100_000_000 <= time_s < 1 << 33:
            return None
        logged, warning = self._ask("rev-parse", "--verify", f"HEAD@{{{time_s} +0000}}")
        if not warning and _HASH.fullmatch(logged):
            return logged
        found = self._ask("rev-list", "-1", "--first-parent", f"--before={time_s}", "HEAD")[0]
        return found if _HASH.fullmatch(found) else None

    def commit_after(self, time_ns: int) -> str | None:
        """The first commit on HEAD's branch that was made after a time: what was being written then."""
        time_s = time_ns // 1_000_000_000
        if not 100_000_000 <= time_s < 1 << 33:
            return None
        listed = self._ask("rev-list", "--first-parent", "-2000", f"--since={time_s}", "HEAD")[0].split()
        return listed[-1] if listed and _HASH.fullmatch(listed[-1]) else None

    def head(self) -> str | None:
        """The commit that is checked out."""
        found = self._ask("rev-parse", "--verify", "HEAD")[0]
        return found if _HASH.fullmatch(found) else None

    def files(self, commit: str) -> Mapping[str, str]:
        """The Python files of a commit that lie in the folder, with their blobs' hashes."""
        if commit not in self._trees:
            self._trees[commit] = self._listed(commit) if _HASH.fullmatch(commit) else {}
        return self._trees[commit]

    def holds(self, path: str) -> bool:
        """Whether a file of the folder is in the commit that is checked out."""
        return bool(self._run("ls-tree", "--name-only", "HEAD", "--", path))

    def _listed(self, commit: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        tree = f"{commit}:{self._prefix}" if self._prefix else commit
        for entry in self._run("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0"):
            about, tab, name = entry.partition(b"\t")
            fields = about.decode("ascii", "replace").split()
            if not tab or len(fields) != 3 or fields[1] != "blob" or not name.endswith(b".py"):
                continue
            path = os.fsdecode(name)
            if fields[0] != "120000" and ".." not in PurePosixPath(path).parts:  # a link's blob is no text
                found[path] = fields[2]
        return found

    def _ask(self, *command: str) -> tuple[str, str]:
        """A command's answer and what it warns of."""
        done = _run(self._program, self._root, command)
        if done is None:
            return "", "no answer"
        warning = done.stderr if done.returncode == 0 else done.stderr or b"failed"
        return done.stdout[:1_000_000].decode("utf-8", "replace").strip(), warning.decode("utf-8", "replace")

    def _run(self, *command: str, given: Iterable[str] = ()) -> bytes:
        done = _run(self._program, self._root, command, "".join(f"{line}\n" for line in given).encode())
        if done is None or done.returncode != 0 or len(done.stdout) > _MOST_LISTED:
            return b""
        return done.stdout


def open_repository(root: Path) -> Repository | None:
    """The repository that holds the folder `root`; None if there is none, it is another user's, or git is missing."""
    program = shutil.which("git")
    if program is None or not root.is_absolute() or not any((up / ".git").exists() for up in (root, *root.parents)):
        return None
    done = _run(program, root, ("rev-parse", "--is-inside-work-tree", "--show-prefix"))
    if done is None or done.returncode != 0:
        return None
    lines = done.stdout.decode("utf-8", "surrogateescape").split("\n")
    if lines[0] != "true":
        return None
    return Repository(root, program, lines[1] if len(lines) > 1 else "")


def blob_hash(text: str) -> str:
    """The hash of a file of this text, in UTF-8 and with these line ends, as a blob."""
    return _hashed(text.encode("utf-8", "replace"), "sha1")


def blob_hashes(text: str) -> frozenset[str]:
    """The hashes that a file of this text may have as a blob: with and without byte order mark, line ends as they are
    or as git keeps them."""
    texts = {text, text.replace("\r\n", "\n")}
    contents = [mark + one.encode("utf-8", "replace") for one in texts for mark in (b"", b"\xef\xbb\xbf")]
    return frozenset(_hashed(content, kind) for content in contents for kind in ("sha1", "sha256"))


def _hashed(content: bytes, kind: str) -> str:
    return hashlib.new(kind, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _batch(answer: bytes) -> dict[str, str | None]:
    """What `cat-file --batch` answered, by hash."""
    found: dict[str, str | None] = {}
    position = 0
    while (end := answer.find(b"\n", position)) >= 0:
        fields = answer[position:end].decode("ascii", "replace").split()
        position = end + 1
        if len(fields) == 3 and fields[2].isdigit():
            size = int(fields[2])
            if fields[1] == "blob":
                text, error = decode(answer[position : position + size])
                found[fields[0]] = None if error else text
            position += size + 1
    return found


def _run(
    program: str, root: Path, command: Iterable[str], given: bytes = b""
) -> subprocess.CompletedProcess[bytes] | None:
    """What git did; None where it did not run to its end."""
    try:
        return subprocess.run(
            [program, "--no-optional-locks", "--no-pager", "--no-replace-objects", *_SAFE, *command],
            cwd=root,
            env=_environment(),
            input=given,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None


def _environment() -> dict[str, str]:
    """The user's environment without what leads git elsewhere, and with every way to other programs closed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        # Overrides any `protocol.*.allow`: a repository that lacks objects could have them fetched by any command.
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_PAGER": "cat",
        "LC_ALL": "C",
    }
