"""Projects with real traces and known faults: the bundled example, and those of the data folder beside it all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = ROOT.parent / "shared" / "projects"


@dataclass(frozen=True)
class Fault:
    """A fault of a project that has a safe fix."""

    folder: Path
    trace: Path
    slug: str
    path: str
    """The faulty file, relative to `folder`."""
    lines: frozenset[int]
    """The lines that are right, from 1."""

    def copied_to(self, folder: Path) -> Path:
        """Copy the source; answers the faulty file."""
        for file in (self.folder / "src").rglob("*.py"):
            copy = folder / file.relative_to(self.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())  # neither files nor folders stay read-only
        return folder / self.path


def bundled_fault() -> Fault:
    """Hand-written attention in the bundled example."""
    folder = ROOT / "examples" / "leaves"
    trace = folder / "traces" / "train.pt.trace.json.gz"
    source = (folder / "src" / "vit.py").read_text("utf-8").splitlines()
    lines = frozenset(
        i for i, line in enumerate(source, 1) if "q @ k" in line or "softmax" in line or "attn @ v" in line
    )
    return Fault(folder, trace, "unfused-attention", "src/vit.py", lines)


def shared_fault(project: str, slug: str) -> Fault:
    """A fault by its project's truth; skips the test where the projects are not at hand."""
    folder = PROJECTS / project
    if not folder.is_dir():
        pytest.skip("../shared/projects is not here")
    faults = json.loads((folder / "truth.json").read_text())["faults"]
    truth = next(fault for fault in faults if fault["slug"] == slug)
    also = [place.rpartition(":") for place in truth.get("also_lines", ())]
    lines = {*range(truth["line"], truth["end_line"] + 1)} | {int(n) for path, _, n in also if path == truth["path"]}
    return Fault(folder, folder / "trace.json.gz", slug, truth["path"], frozenset(lines))


FAULTS = {
    "leaves": bundled_fault,
    "posekit": lambda: shared_fault("posekit", "unfused-attention"),
    "resnet_birds": lambda: shared_fault("resnet_birds", "dataloader-in-main-process"),
}
