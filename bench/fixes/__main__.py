"""Every fix on a large body of other people's code: `python -m bench.fixes FOLDER [--sample N --into FILE]`.

FOLDER holds packages as text, one folder each (unpacked wheels will do); nothing of them is imported or run. Each
fixer looks for its fault in all of a package's files. Counted are hits, exceptions, fixed files that do not parse, and
fixes that are offered again on the fixed text; the exit status is 1 if any of the last three is not 0. `--sample`
writes N hits with their edits, to be read one by one. README.md beside this file has the verdicts.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchtraceap.analyzer.findings import Safety

from ..results import Figure, Target, publish
from .trial import Hit, Trial, try_package

SEED = 20


def sample(hits: Sequence[Hit], count: int) -> list[Hit]:
    """`count` hits, as evenly over the slugs as they come, the same ones for the same hits."""
    chosen: list[Hit] = []
    shuffled = list(hits)
    random.Random(SEED).shuffle(shuffled)
    taken: Counter[str] = Counter()
    while len(chosen) < min(count, len(shuffled)):
        fewest = min(taken[hit.slug] for hit in shuffled if hit not in chosen)
        hit = next(hit for hit in shuffled if hit not in chosen and taken[hit.slug] == fewest)
        taken[hit.slug] += 1
        chosen.append(hit)
    return sorted(chosen, key=lambda hit: (hit.slug, hit.package, hit.path, hit.line))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print and publish the counts; 1 if a fix crashed, broke a file or repeated itself."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.fixes", description=__doc__, formatter_class=raw)
    parser.add_argument("folder", type=Path, help="packages as text, one folder each")
    parser.add_argument("--select", action="append", default=[], help="only this pattern (may be repeated)")
    parser.add_argument("--sample", type=int, default=0, help="how many hits to write out")
    parser.add_argument("--into", type=Path, default=Path("sample.diff"), help="where to write them")
    options = parser.parse_args(arguments)
    trials: list[Trial] = []
    for folder in sorted(path for path in options.folder.iterdir() if path.is_dir()):
        print(f"{folder.name} ...", file=sys.stderr, flush=True)
        trials.append(try_package(folder, options.select))
    hits = [hit for trial in trials for hit in trial.hits]
    failures = [failure for trial in trials for failure in trial.failures]
    for failure in failures:
        print(failure)
    if options.sample:
        chosen = sample([hit for hit in hits if hit.fix], options.sample)
        options.into.write_text("\n".join(hit.text for hit in chosen), "utf-8")
    publish("fixes", list(_figures(trials)), targets={"failures": Target(at_most=0)}, packages=("libcst",))
    return 1 if failures else 0


def _figures(trials: Sequence[Trial]) -> Iterator[Figure]:
    hits = [hit for trial in trials for hit in trial.hits]
    for trial in trials:
        yield from _counts(trial.package, trial.hits)
        yield Figure(trial.package, "files", trial.files)
        yield Figure(trial.package, "failures", len(trial.failures))
    for slug in sorted({hit.slug for hit in hits}):
        yield from _counts(slug, [hit for hit in hits if hit.slug == slug])


def _counts(subject: str, hits: Sequence[Hit]) -> Iterator[Figure]:
    safeties = [hit.fix.safety for hit in hits if hit.fix]
    yield Figure(subject, "hits", len(hits))
    yield Figure(subject, "safe_fixes", safeties.count(Safety.SAFE))
    yield Figure(subject, "unsafe_fixes", safeties.count(Safety.UNSAFE))


if __name__ == "__main__":
    raise SystemExit(main())
