"""Projects with real traces and known faults, from the data folder beside the repository."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECTS = Path(__file__).resolve().parents[3] / "shared" / "projects"


@dataclass(frozen=True)
class Fault:
    """A fault of a project that has a safe fix."""

    project: str
    slug: str

    @property
    def trace(self) -> Path:
        return PROJECTS / self.project / "trace.json.gz"

    def truth(self) -> dict:
        faults = json.loads((PROJECTS / self.project / "truth.json").read_text())["faults"]
        return next(fault for fault in faults if fault["slug"] == self.slug)

    def lines(self) -> set[int]:
        """The lines that are right, from 1."""
        truth = self.truth()
        same = [place.rpartition(":") for place in truth.get("also_lines", ())]
        also = {int(line) for path, _, line in same if path == truth["path"]}
        return {*range(truth["line"], truth["end_line"] + 1)} | also

    def copied_to(self, folder: Path) -> Path:
        """Copy the source; answers the faulty file."""
        source = PROJECTS / self.project
        for file in (source / "src").rglob("*.py"):
            copy = folder / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())  # neither files nor folders stay read-only
        return folder / self.truth()["path"]


FAULTS = (Fault("posekit", "unfused-attention"), Fault("resnet_birds", "dataloader-in-main-process"))

needs_projects = pytest.mark.skipif(not PROJECTS.is_dir(), reason="../shared/projects is not here")
