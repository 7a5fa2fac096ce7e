"""The detector against what people would use instead: `python -m bench.detector [--last-look]`.

Every method is judged on the windows of families and devices that none has seen, with 95 % intervals of draws of whole
runs. Then the shipped models on less than a whole recording, and on real traces of FOLDER (default: ../shared/traces).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.corpus.parts import CORPUS
from bench.folder import DEFAULT_FOLDER
from bench.results import Figure, Target, publish
from torchtraceap.analyzer.detector.scorer import SHIPPED, Detector
from torchtraceap.analyzer.detector.training.dataset import Dataset
from torchtraceap.analyzer.detector.training.split import split
from torchtraceap.analyzer.trace.model import BoolArray

from .ablations import ablations
from .baselines import baselines
from .evaluate import Judged, as_figures, fit_all, judge
from .ours import ours
from .real import TOP_DECILE, Seen, look

FEATURES = Path(__file__).resolve().parents[1] / "corpus" / "features"
OURS = "ours"
TARGETS = {
    f"{OURS} auc_bad": Target(at_least=0.95),
    f"{OURS} ece": Target(at_most=0.05),
    f"{OURS} kind_top1": Target(at_least=0.85),
    f"{OURS} kind_top3": Target(at_least=0.95),
    f"{OURS} auc_above_best_other": Target(at_least=0.10),
}
OTHERS = ("isolation forest", "k-means", "robust z-score", "logistic regression")
"""What people would use instead."""
ON_OUR_FEATURES = "logistic regression on our features"
"""Our features with a plain model: what is left to forest and network."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print all tables and write results.json; 1 if a target is missed, 2 without a corpus."""
    options = _options(arguments)
    path = options.corpus / CORPUS
    if not path.exists():
        print(f"no {path}: build it with python -m bench.corpus --out {options.corpus}", file=sys.stderr)
        return 2
    dataset = Dataset.load(path)
    parts = split(dataset)
    whole = _of_variants(dataset, "full")
    detector = Detector.load(options.models)
    methods = (*ours(detector), *baselines(), *ablations())
    fit_all(methods, dataset, parts.training)
    judged = [judge(method, dataset, parts.test & whole) for method in methods]
    on_cpu = [judge(method, dataset, parts.test_on_cpu & whole) for method in methods]
    less = [
        replace(judge(methods[0], dataset, parts.test & _of_variants(dataset, variant)), method=f"{OURS}, {variant}")
        for variant in sorted(set(dataset.variant.tolist()) - {"full"})
    ]
    figures = as_figures(judged) + as_figures(on_cpu, "on the CPU: ") + as_figures(less)
    figures += _margin(judged)
    met = publish(
        "detector",
        figures,
        targets=TARGETS,
        packages=("numpy", "scikit-learn", "torch", "onnxruntime"),
        notes=_notes(dataset, parts.test & whole, judged),
        details={f"{one.method}, 95 %": dict(one.bounds()) for one in judged},
    )
    if options.folder.is_dir():
        _show_real(list(look(options.folder, detector, options.last_look)))
    return 0 if met else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.detector", description=__doc__, formatter_class=raw)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER, help="real traces with a truth.json")
    parser.add_argument("--corpus", type=Path, default=FEATURES)
    parser.add_argument("--models", type=Path, default=SHIPPED)
    parser.add_argument("--last-look", action="store_true", help="the real traces that were kept for the end")
    return parser.parse_args(arguments)


def _of_variants(dataset: Dataset, variant: str) -> BoolArray:
    return (dataset.variant == variant)[dataset.trace]


def _margin(judged: Sequence[Judged]) -> list[Figure]:
    """By how much ours is better than the best of the others."""
    auc = {one.method: one.values()["auc_bad"] for one in judged}
    best = max(auc[name] for name in OTHERS)
    return [
        Figure(OURS, "auc_above_best_other", auc[OURS] - best),
        Figure(OURS, "auc_above_plain_model_on_our_features", auc[OURS] - auc[ON_OUR_FEATURES]),
    ]


def _notes(dataset: Dataset, chosen: BoolArray, judged: Sequence[Judged]) -> list[str]:
    traces = np.unique(dataset.trace[chosen])
    ours_only = judged[0].figures
    return [
        f"judged on {ours_only.windows:,} windows ({ours_only.bad_windows:,} bad) of {len(traces):,} traces of"
        f" {len(np.unique(dataset.family[traces]))} families on {len(np.unique(dataset.device[traces]))} devices,"
        " none of them learned from",
        "kind_top1 and kind_top3: share of the bad windows whose likeliest kind, or one of the likeliest three, is one"
        f" that the window shows, of {len(dataset.kinds)}",
    ]


def _show_real(seen: Sequence[Seen]) -> None:
    table = Table(title="bench/detector: real traces")
    for column in (
        "trace",
        "windows",
        "unknown %",
        "median P(bad)",
        "largest",
        "known fault",
        "in",
        "P(bad)",
        "rank %",
        "by kind %",
        "kind's place",
    ):
        table.add_column(column)
    for one in seen:
        head = (one.name, str(one.windows), f"{one.unknown_pct:.0f}", f"{one.median_bad:.2f}", f"{one.largest_bad:.2f}")
        for number, carrier in enumerate(one.carriers or (None,)):
            tail = ("healthy" if one.is_healthy else "none priced", *[""] * 5)
            if carrier is not None:
                ranks = [_rank(carrier.rank_pct), _rank(carrier.kind_rank_pct)]
                place = str(carrier.kind_place or "unknown")
                tail = (carrier.slug, carrier.region, f"{carrier.bad:.2f}", *ranks, place)
            table.add_row(*(head if number == 0 else [""] * len(head)), *tail)
    Console(width=160).print(table)


def _rank(share_pct: float) -> str:
    return f"[{'green' if share_pct >= TOP_DECILE else 'red'}]{share_pct:.0f}[/]"


if __name__ == "__main__":
    sys.exit(main())
