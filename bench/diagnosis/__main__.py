"""The exam of the diagnosis: `python -m bench.diagnosis [--backend NAME]... [--limit N]`.

Asks what is in exam.jsonl.xz (windows and findings of families that nothing has learned from) and the real traces of
FOLDER, of the first stage alone and of each backend named: `small` (with the shipped adapter), `small-untuned`,
`endpoint`, or the path of a model. Figures of a backend that was not asked stay in results.json as they were, where the
questions are still the same. The exit status is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.folder import DEFAULT_FOLDER
from bench.results import Figure, Target, publish
from torchtraceap.analyzer.detector.scorer import SHIPPED, Detector
from torchtraceap.analyzer.detector.shipped import Shipped
from torchtraceap.analyzer.diagnosis.backends.base import BackendError

from .asked import FINDING, REAL
from .asking import by_stage_one
from .examined import Shown, examine
from .opening import ENDPOINT, SMALL, UNTUNED, opened, settings_for
from .questions import Question, read_questions
from .real import real_questions
from .report import write_report
from .score import Measured, Scored, measure

BEHIND = "behind_stage_one"
HERE = Path(__file__).parent
EXAM = HERE / "exam.jsonl.xz"
RESULTS = HERE / "results.json"
STAGE_ONE = "stage-one"
ON_REAL = ", real traces"
SAMPLES = 3
TARGETS = {
    f"{SMALL} json_valid": Target(at_least=100.0),
    f"{SMALL} pattern_acc": Target(at_least=0.85),
    f"{SMALL} none_acc": Target(at_least=0.9),
    f"{SMALL} fix_acc": Target(at_least=0.85),
    f"{SMALL} behind_stage_one": Target(at_most=0.03),
    f"{SMALL} seconds_per_answer": Target(at_most=15.0),
    "false_numbers_shown": Target(at_most=0),
}
"""`behind_stage_one`: by how much the pattern accuracy is below that of stage one alone."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, write results.json and report.md; 1 if a target is missed, 2 if a backend cannot be run."""
    options = _options(arguments)
    questions = read_questions(options.exam)[: options.limit]
    real: list[Question] = []
    if (options.folder / "truth.json").is_file():
        real = list(real_questions(options.folder, Shipped(), last_look=options.last_look))[: options.limit]
    mark = _mark([*questions, *real])
    threshold = Detector.load(SHIPPED).card.threshold
    by_stage = [Scored(one, by_stage_one(one, threshold)) for one in (*questions, *real)]
    measured = _measured(STAGE_ONE, by_stage)
    shown: list[Shown] = []
    for name in (one for one in options.backend if one != STAGE_ONE):
        try:
            with opened(settings_for(name, options.endpoint_url, options.key_variable)) as backend:
                told = examine(name, [*questions, *real], backend, options.samples, options.answers)
        except BackendError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 2
        shown += told
        measured |= _measured(name, [one.scored for one in told])
    met = publish(
        "diagnosis",
        _figures(_kept(mark, measured) | {name: _values(figures) for name, figures in measured.items()}),
        targets=TARGETS,
        packages=("torch", "transformers", "bitsandbytes", "peft", "llguidance", "onnxruntime"),
        notes=_notes(questions, real, mark),
        details={f"{name}, 95 %": _bounds(figures) for name, figures in measured.items()},
    )
    if shown:
        write_report(HERE / "report.md", shown)
    return 0 if met else 1


def _measured(name: str, scored: Sequence[Scored]) -> dict[str, dict[str, Measured]]:
    """A row for the exam, and one for the real traces."""
    exam = [one for one in scored if one.question.family != REAL]
    real = [one for one in scored if one.question.family == REAL]
    rows = {name: exam, f"{name}{ON_REAL}": real}
    return {subject: measure(its) for subject, its in rows.items() if its}


def _values(figures: Mapping[str, Measured]) -> dict[str, float]:
    return {name: one.value for name, one in figures.items()}


def _bounds(figures: Mapping[str, Measured]) -> dict[str, float]:
    return {f"{name}_{end}": getattr(one, end) for name, one in figures.items() for end in ("low", "high")}


def _figures(rows: Mapping[str, Mapping[str, float]]) -> list[Figure]:
    """All rows, each model's with how far it is behind the first stage."""
    found = [Figure(subject, name, value) for subject, row in rows.items() for name, value in row.items()]
    for subject, row in rows.items():
        first = rows.get(f"{STAGE_ONE}{ON_REAL}" if subject.endswith(ON_REAL) else STAGE_ONE)
        if first is not None and "json_valid" in row:
            found.append(Figure(subject, BEHIND, first["pattern_acc"] - row["pattern_acc"]))
    return found


def _kept(mark: str, measured: Mapping[str, object]) -> dict[str, dict[str, float]]:
    """What results.json says of backends that were not asked now, where the questions were the same."""
    try:
        last = msgspec.json.decode(RESULTS.read_bytes(), type=_Results)
    except (OSError, msgspec.DecodeError):
        return {}
    if not any(mark in note for note in last.notes):
        return {}
    rows = {subject: row for subject, row in last.results.items() if subject not in measured}
    return {subject: {name: value for name, value in row.items() if name != BEHIND} for subject, row in rows.items()}


@dataclass(frozen=True, slots=True)
class _Results:
    notes: tuple[str, ...]
    results: dict[str, dict[str, float]]


def _mark(questions: Sequence[Question]) -> str:
    """A word that tells these questions from others."""
    return hashlib.sha256(msgspec.json.encode(questions)).hexdigest()[:12]


def _notes(questions: Sequence[Question], real: Sequence[Question], mark: str) -> list[str]:
    healthy, findings = (sum(test(one) for one in questions) for test in (_is_healthy, _is_finding))
    traces, families = len({one.run for one in questions}), len({one.family for one in questions})
    return [
        f"exam {mark}: {len(questions)} questions ({len(questions) - findings} windows, {findings} findings; {healthy}"
        f" healthy) of {traces} traces of {families} families that nothing has learned"
        f" from, and {len(real)} of real traces",
        f"to {sum(not one.is_answerable for one in questions)} questions no choice is right: nobody can answer them",
        "pattern_acc is of all questions, fault_acc of those with a fault, fix_acc of those with a fix on offer;"
        " claims_kept_pct is the share of claims that the check lets pass, false_numbers_shown counts by another check",
    ]


def _is_healthy(question: Question) -> bool:
    return question.is_healthy


def _is_finding(question: Question) -> bool:
    return question.sort == FINDING


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.diagnosis", description=__doc__, formatter_class=raw)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER, help="real traces with a truth.json")
    parser.add_argument(
        "--backend",
        action="append",
        metavar=f"{STAGE_ONE}|{SMALL}|{UNTUNED}|{ENDPOINT}|PATH",
        help=f"whom to ask; may be repeated (default: {SMALL}). {STAGE_ONE} is always asked",
    )
    parser.add_argument("--endpoint-url", default="", help="of the endpoint: http://localhost:8000/v1")
    parser.add_argument("--key-variable", default="", help="the environment variable that holds its key")
    parser.add_argument("--exam", type=Path, default=EXAM)
    parser.add_argument("--limit", type=int, help="only so many questions of each part")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="times that each question is asked")
    parser.add_argument("--answers", type=Path, help="a folder that keeps answers, to go on where a run was ended")
    parser.add_argument("--last-look", action="store_true", help="the real traces that were kept for the end")
    options = parser.parse_args(arguments)
    options.backend = options.backend or [SMALL]
    return options


if __name__ == "__main__":
    sys.exit(main())
