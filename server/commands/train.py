"""`torchtraceap train`: learn the detector's models again, or teach a language model the diagnosis."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import click
from rich.console import Console

from ...analyzer.detector.card import Card, Interval, read_card
from ...analyzer.detector.card_text import as_page

NEEDED = {
    "train": ("torch", "sklearn", "scipy", "onnx"),
    "llm": (
        "torch",
        "transformers",
        "bitsandbytes",
        "peft",
        "safetensors",
        "llguidance",
        "filelock",
        "huggingface_hub",
    ),
}
"""By extra of the package."""
MISSING = "training needs {name}, which is not installed: pip install 'torchtraceap[{extra}]'"


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
    _require("train")
    from ...analyzer.detector.inputs import SCHEMA
    from ...analyzer.detector.training.dataset import Dataset
    from ...analyzer.detector.training.train import Settings
    from ...analyzer.detector.training.train import train as learn

    tell = _teller()
    settings = Settings(seed=seed, threads=threads)
    if epochs is not None:
        settings = replace(settings, epochs=epochs)
    try:
        dataset = Dataset.concatenate([Dataset.load(path) for path in paths])
        if dataset.schema != SCHEMA:
            tell(f"warning: the corpus is of {dataset.schema}, this version makes {SCHEMA} and will refuse the models")
        learn(dataset, out, settings, tell)
    except (ValueError, OSError) as error:
        raise click.ClickException(f"{corpus}: {error}") from error
    card = read_card(out)
    if page is not None:
        page.write_text(as_page(card), "utf-8")
    click.echo(summary(card))


@train.command()
@click.option(
    "--pairs",
    "path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="What to learn from: a .jsonl that `python -m bench.diagnosis.pairs` wrote.",
)
@click.option(
    "--base",
    "wanted",
    default="small",
    show_default=True,
    help="`small`, a folder, or the name of a model on the hub that has been downloaded.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Where the adapter, its loss curve and its card go.",
)
@click.option("--epochs", type=click.IntRange(1), default=1, show_default=True, help="Passes over the pairs.")
@click.option(
    "--minutes", type=click.FloatRange(0, min_open=True), help="Stop by then.  [default: when all is learned]"
)
@click.option("--rank", type=click.IntRange(1, 256), default=16, show_default=True, help="Of the LoRA matrices.")
@click.option("--layers", type=click.IntRange(1), help="Upper layers that learn.  [default: 15 of the small one; all]")
@click.option("--seed", default=0, show_default=True, help="The same seed, pairs and base give the same adapter.")
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True, help="Pairs at once on a CPU.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint in --out.")
def diagnosis(
    path: Path,
    wanted: str,
    out: Path,
    epochs: int,
    minutes: float | None,
    rank: int,
    layers: int | None,
    seed: int,
    threads: int,
    resume: bool,
) -> None:
    """Teach a language model to diagnose: LoRA for the small one, QLoRA on 4 bits (NF4) for all others.

    The small one takes about an hour on two cores. Writes adapter_model.safetensors, adapter_config.json, loss.csv,
    card.json and README.md; a training that was killed goes on with --resume and ends with the same adapter.
    """
    _require("llm")
    from ...analyzer.diagnosis.backends.base import BackendError
    from ...analyzer.diagnosis.training.base import SMALL, load_base
    from ...analyzer.diagnosis.training.pairs import read_pairs
    from ...analyzer.diagnosis.training.train import SMALL_LAYERS, Settings
    from ...analyzer.diagnosis.training.train import train as teach

    tell = _teller()
    settings = Settings(seed=seed, epochs=epochs, minutes=minutes, rank=rank, layers=layers, threads=threads)
    if layers is None and wanted == SMALL:
        settings = replace(settings, layers=SMALL_LAYERS)
    try:
        pairs = read_pairs(path)
        card = teach(pairs, load_base(wanted), out, settings, tell, resume=resume)
    except (ValueError, OSError, BackendError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{out}: {card.pairs_learned} pairs in {card.minutes:.0f} minutes, loss {card.last_loss:.3f}")


def _teller() -> Callable[[str], None]:
    """What prints a sentence with the seconds since now."""
    console = Console(stderr=True)
    began = time.monotonic()

    def tell(sentence: str) -> None:
        console.print(f"{time.monotonic() - began:6.0f} s  {sentence}", highlight=False, markup=False)

    return tell


def _require(extra: str) -> None:
    """Say how to get what is not installed, before anything long begins."""
    for name in NEEDED[extra]:
        if find_spec(name) is None:
            raise click.ClickException(MISSING.format(name=name, extra=extra))


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
