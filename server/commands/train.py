"""`torchtraceap train`: learn the detector's models again."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from ...analyzer.detector.card import Card, Interval, read_card
from ...analyzer.detector.card_text import as_page

NEEDED = ("torch", "sklearn", "scipy", "onnx")
MISSING = "training needs {name}, which is not installed: pip install 'torchtraceap[train]'"


@click.group()
def train() -> None:
    """Learn the models again that the analysis ships with."""


@train.command()
@click.option(
    "--corpus",
    type=click.Path(exists=True, path_type=Path),
    required=True,
    help="What to learn from: an .npz that `python -m bench.corpus` wrote, or a folder of them.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Where the models and their card go.",
)
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), help="Write the card there as a page, too.")
@click.option("--seed", default=0, show_default=True, help="The same seed and corpus give the same models.")
@click.option("--epochs", type=click.IntRange(1), help="Passes of the network over the corpus.  [default: 30]")
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True)
def detector(corpus: Path, out: Path, page: Path | None, seed: int, epochs: int | None, threads: int) -> None:
    """Train the detector on a corpus of labelled traces, and print how well it does on what it has not seen.

    Takes less than an hour on two cores. Writes forest.onnx, network.onnx, novelty.npz and card.json.
    """
    paths = sorted(corpus.glob("*.npz")) if corpus.is_dir() else [corpus]
    if not paths:
        raise click.BadParameter(f"no .npz in {corpus}", param_hint="--corpus")
    try:
        from ...analyzer.detector.training.dataset import Dataset
        from ...analyzer.detector.training.train import Settings
        from ...analyzer.detector.training.train import train as learn
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        raise click.ClickException(MISSING.format(name=error.name)) from error
    console = Console(stderr=True)
    began = time.monotonic()

    def tell(sentence: str) -> None:
        console.print(f"{time.monotonic() - began:6.0f} s  {sentence}", highlight=False, markup=False)

    settings = Settings(seed=seed, threads=threads)
    if epochs is not None:
        settings = replace(settings, epochs=epochs)
    try:
        dataset = Dataset.concatenate([Dataset.load(path) for path in paths])
        learn(dataset, out, settings, tell)
    except (ValueError, KeyError) as error:
        raise click.ClickException(f"{corpus}: {error}") from error
    card = read_card(out)
    if page is not None:
        page.write_text(as_page(card), "utf-8")
    click.echo(summary(card))


def summary(card: Card) -> str:
    """The figures of a card as lines for the terminal."""
    lines = []
    for figures in card.figures:
        lines.append(
            f"{figures.what}: {figures.windows:,} windows of {figures.runs:,} runs, {figures.bad_windows:,} bad"
        )
        for name in ("auc_bad", "ap_bad", "ece", "kind_top1", "kind_top3"):
            lines.append(f"  {name:<10} {_interval(getattr(figures, name))}")
    return "\n".join(lines)


def _interval(figure: Interval) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "not known"
    return f"{figure.value:.3f}  ({figure.low:.3f} to {figure.high:.3f})"
