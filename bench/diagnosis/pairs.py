"""Makes what a model learns from, and the exam: `python -m bench.diagnosis.pairs --out DIR`.

Runs programs as `bench.corpus` does and keeps their traces (or takes those of `--traces`), asks of each what stage two
is asked, and writes the right answers by program. DIR/pairs.jsonl is what `torchtraceap train diagnosis` reads;
DIR/exam.jsonl.xz are the questions of families that nothing learns from, for `python -m bench.diagnosis`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Literal

from bench.corpus.build import Settings, build
from torchtraceap.analyzer.detector.shipped import Shipped
from torchtraceap.analyzer.diagnosis.answer import Answer
from torchtraceap.analyzer.diagnosis.checks import check_cause, check_claims
from torchtraceap.analyzer.diagnosis.dossier import Dossier
from torchtraceap.analyzer.diagnosis.known import Known
from torchtraceap.analyzer.diagnosis.training.pairs import Pair, write_pairs
from torchtraceap.analyzer.trace.limits import TraceError

from .answers import right_answer
from .asked import questions_of
from .labelled import Kept, kept_traces
from .questions import Question, write_questions
from .recheck import false_figures
from .room import ids_shown
from .sources import with_source
from .traps import KINDS, trapped

PAIRS, EXAM = "pairs.jsonl", "exam.jsonl.xz"
HEALTHY_SHARE = 0.35
MOST_OF_TRACE = 12
"""Questions of one trace; of one trace of the exam a quarter as many."""
MOST_OF_KIND_SHARE = 0.05
"""Of all questions, those of which one kind is right."""
SOURCE_SHARE = 0.6
"""Of findings that are true, those that get source."""
TRAP_SHARE = 0.2
EXAM_QUESTIONS = 480
_BATCH = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Write both files; 2 if there are no traces."""
    options = _options(arguments)
    traces, parts = options.traces, options.parts
    if traces is None:
        traces, parts = _build(options.out, options.runs, options.seed, options.processes)
    kept = list(kept_traces(traces, parts))
    if not kept:
        print(f"no kept traces with labels in {traces} and {parts}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    rng = Random(options.seed)
    began = time.perf_counter()
    asked = list(_ask(rng.sample(kept, len(kept)), options.seed, options.processes))
    print(f"{len(kept)} traces, {len(asked)} questions, {time.perf_counter() - began:.0f} s")
    for_exam = [question for is_for_exam, question in asked if is_for_exam]
    for_training = [question for is_for_exam, question in asked if not is_for_exam and question.is_learnable]
    exam = prepared(chosen(for_exam, options.exam, MOST_OF_TRACE // 4, rng), rng, is_for_exam=True)
    write_questions(options.out / EXAM, exam)
    training = prepared(chosen(for_training, options.pairs, MOST_OF_TRACE, rng), rng, is_for_exam=False)
    pairs = [pair for question in training if (pair := pair_of(question, "train", rng)) is not None]
    pairs += [pair for question in exam if (pair := pair_of(question, "exam", rng)) is not None]
    write_pairs(options.out / PAIRS, pairs)
    print(_summary("pairs", training), _summary("exam", exam), f"{options.out / PAIRS}: {len(pairs)} pairs", sep="\n")
    return 0


def chosen(questions: Sequence[Question], most: int, most_of_trace: int, rng: Random) -> list[Question]:
    """So many questions, the share of healthy ones set, no kind and no trace more often than it may be."""
    bad = [question for question in questions if not question.is_healthy]
    healthy = [question for question in questions if question.is_healthy]
    bad_most = round(most * (1 - HEALTHY_SHARE))
    taken = _some(bad, bad_most, most_of_trace, max(4, round(most * MOST_OF_KIND_SHARE)), rng)
    taken += _some(healthy, min(most - bad_most, len(taken)), most_of_trace, most, rng)
    return rng.sample(taken, len(taken))


def _some(questions: list[Question], most: int, most_of_trace: int, most_of_kind: int, rng: Random) -> list[Question]:
    of_trace, of_kind = Counter[str](), Counter[str]()
    taken = []
    for question in rng.sample(questions, len(questions)):
        kind = question.right[0] if question.right else ""
        if len(taken) == most:
            break
        if of_trace[question.run] < most_of_trace and of_kind[kind] < most_of_kind:
            of_trace[question.run] += 1
            of_kind[kind] += 1
            taken.append(question)
    return taken


def prepared(questions: Iterable[Question], rng: Random, *, is_for_exam: bool) -> list[Question]:
    """The questions, a share of the true findings with source, and a share of all with a trap."""
    found = []
    for question in questions:
        slug = question.dossier.slug
        if slug in question.right and rng.random() < SOURCE_SHARE:
            question = replace(question, dossier=with_source(question.dossier, slug, is_for_exam, rng))
        if rng.random() < TRAP_SHARE:
            kinds = rng.sample(KINDS, len(KINDS))
            made = (trapped(question, kind, is_for_exam, rng) for kind in kinds)
            question = next((one for one in made if one is not None), question)
        found.append(question)
    return found


def pair_of(question: Question, split: Literal["train", "exam"], rng: Random) -> Pair | None:
    """The question with its right answer; None where no choice is right. Raises ValueError if the answer would not
    pass the checks that a model's answers go through: a mistake of what wrote it."""
    if not question.is_answerable:
        return None
    answer = right_answer(question, ids_shown(question.dossier), rng)
    if complaint := _complaint(answer, question.dossier):
        raise ValueError(f"{question.run}: {complaint}")
    return Pair(question.dossier, answer, split, question.family, question.run)


def _complaint(answer: Answer, dossier: Dossier) -> str:
    """What the checks of a model's answers have against it; "" if nothing."""
    known = Known(dossier)
    checked = check_claims(answer.claims, known)
    if checked.dropped or not checked.claims:
        return f"{checked.dropped}"
    if not check_cause(answer.cause, known):
        return f"the cause {answer.cause!r} does not pass"
    return "; ".join(false_figures(answer.claims, dossier))


def _ask(kept: Sequence[Kept], seed: int, processes: int) -> Iterator[tuple[bool, Question]]:
    """All questions of all traces, each with whether it is for the exam. Traces that cannot be asked are named."""
    batches = [kept[at : at + _BATCH] for at in range(0, len(kept), _BATCH)]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for found, failures in pool.map(_ask_batch, batches, [seed] * len(batches)):
            yield from found
            for failure in failures:
                print(failure, file=sys.stderr)


def _ask_batch(kept: Sequence[Kept], seed: int) -> tuple[list[tuple[bool, Question]], list[str]]:
    detector, found, failures = Shipped(), [], []
    for one in kept:
        try:
            questions = questions_of(one, detector, Random(f"{seed} {one.trace.name}"))
            found += [(one.is_for_exam, question) for question in questions]
        except (TraceError, ValueError) as error:
            failures.append(f"{one.trace.name}: {error}")
    return found, failures


def _build(out: Path, runs: int, seed: int, processes: int) -> tuple[Path, Path]:
    """Run programs as the detector's corpus does, and keep their traces."""
    settings = Settings(out / "corpus", runs, seed, "cpu", out / "traces")
    for outcome in build(settings, processes):
        if outcome.failure:
            print(f"run {outcome.number} failed: {outcome.failure}", file=sys.stderr)
    return out / "traces", out / "corpus" / "parts"


def _summary(name: str, questions: Sequence[Question]) -> str:
    sorts, traps = (Counter(getattr(one, field) for one in questions) for field in ("sort", "trap"))
    kinds, families = {one.right[0] for one in questions if one.right}, {one.family for one in questions}
    return (
        f"{name}: {len(questions)} questions, {sum(one.is_healthy for one in questions)} healthy,"
        f" {sum(not one.is_answerable for one in questions)} without the right choice;"
        f" {len(kinds)} kinds, {len(families)} families;"
        f" {dict(sorts)}, traps {dict(traps)}, {sum(one.dossier.source is not None for one in questions)} with source"
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.diagnosis.pairs", description=__doc__, formatter_class=raw)
    parser.add_argument("--out", type=Path, required=True, help="where both files, and traces made anew, go")
    parser.add_argument("--runs", type=int, default=300, help="programs to run where there are no kept traces")
    parser.add_argument("--traces", type=Path, help="traces that `python -m bench.corpus --keep-traces` has kept")
    parser.add_argument("--parts", type=Path, help="the folder `parts` of that build")
    parser.add_argument("--pairs", type=int, default=3000, help="at most so many to learn from")
    parser.add_argument("--exam", type=int, default=EXAM_QUESTIONS, help="at most so many questions of the exam")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    if (options.traces is None) != (options.parts is None):
        parser.error("--traces and --parts go together")
    return options


if __name__ == "__main__":
    sys.exit(main())
