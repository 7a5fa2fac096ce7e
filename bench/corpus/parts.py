"""The parts of a corpus: the windows of each run, and its line of the manifest, in files of their own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchtraceap.analyzer.detector.inputs import SCHEMA
from torchtraceap.analyzer.detector.training.dataset import Dataset

from .fault import all_faults
from .plan import Plan

CORPUS = "corpus.npz"
MANIFEST = "manifest.json"
_FOLDER = "parts"


@dataclass(frozen=True, slots=True)
class Parts:
    """A folder of parts. Those of another plan, of other features or other kinds count as missing."""

    out: Path

    def has(self, plan: Plan) -> bool:
        """Whether the run need not be made again."""
        row = self._row_path(plan)
        return row.exists() and _belongs(json.loads(row.read_text("utf-8")), plan)

    def write(self, plan: Plan, part: Dataset, row: Mapping[str, object]) -> None:
        """Keep a run. Its line of the manifest comes last, so that a part with one is whole."""
        path = self._row_path(plan)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        part.save(path.with_suffix(".npz"))
        line = {"run": plan.number, "seed": plan.seed, **row, "version": version()}
        path.write_text(json.dumps(line, separators=(",", ":")), "utf-8")

    def join(self, plans: Sequence[Plan], seed: int) -> Dataset:
        """Put the plans' parts together: the corpus, which is also written, and the manifest. Raises ValueError if
        there are none."""
        rows = [self._row_path(plan) for plan in plans if self.has(plan)]
        if not rows:
            raise ValueError(f"{self.out / _FOLDER} holds no parts of this plan")
        corpus = Dataset.concatenate([Dataset.load(row.with_suffix(".npz")) for row in rows])
        corpus.save(self.out / CORPUS)
        head = {"seed": seed, "schema": corpus.schema, "traces": corpus.traces, "windows": len(corpus)}
        lines = ",\n".join(row.read_text("utf-8") for row in rows)
        (self.out / MANIFEST).write_text(f'{{"corpus": {json.dumps(head)},\n"runs": [\n{lines}\n]}}\n', "utf-8")
        return corpus

    def _row_path(self, plan: Plan) -> Path:
        return self.out / _FOLDER / f"{plan.number:05}.json"


def version() -> str:
    """Of what parts must have in common to be put together: features, vocabulary, kinds."""
    return hashlib.sha256("\n".join((SCHEMA, *sorted(all_faults()))).encode()).hexdigest()[:12]


def _belongs(row: Mapping[str, object], plan: Plan) -> bool:
    return (row.get("seed"), row.get("version")) == (plan.seed, version())
