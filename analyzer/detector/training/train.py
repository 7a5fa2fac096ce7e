"""The whole training: learn, weigh the votes on families left out, export, measure, and write the card."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from ...trace.model import BoolArray, FloatArray, IntArray
from ..card import NOVELTY, Card, Data, Figures, Votes, write_card
from ..sequence import CHANNELS
from .calibrate import balanced_threshold, combine, fit_votes, reliability
from .dataset import TEST_DEVICES, TEST_FAMILIES, Dataset
from .export import export_forest
from .export_network import export_network
from .fit_network import EPOCHS, Progress, fit_network, predict
from .forest import TREES, Forest, fit_forest
from .measures import measure, said_of
from .network import Network
from .novelty_fit import fit_novelty
from .split import folds, split
from .targets import Targets, make_targets

Vote = tuple[FloatArray, FloatArray]
"""P(bad), shape (W,), and P(kind | bad), shape (W, K)."""

LIMITS = (
    "Learned from models of vision run on a CPU and from a simulator's GPU traces, whose durations are modelled: on"
    " real GPUs it has been tried on few traces.",
    "One process and data-parallel training only; pipeline and tensor parallelism were never seen.",
    "A window is called bad from a fifth of its time on, if that is at least 0.5 % of its step: smaller costs are not"
    " looked for.",
    "P(kind) tells the kinds of its list apart and knows no others; a window far from all that was learned from is"
    " marked as unknown, and its probabilities say little.",
    "A kind that is a matter of settings rather than of events (fp32 where half would do) is told from the kernels; in"
    " a trace without kernel names or types it is not.",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How to train."""

    seed: int = 0
    folds: int = 3
    """Parts, by family, each left out once to weigh the votes."""
    epochs: int = EPOCHS
    trees: int = TREES
    threads: int = 2


@dataclass(frozen=True, slots=True)
class Models:
    """What is trained."""

    forest: Forest
    network: Network
    votes: Votes


Tell = Callable[[str], None]


def train(dataset: Dataset, folder: Path, settings: Settings, tell: Tell) -> Card:
    """Train on the dataset's training windows and write the four files of the detector into `folder`.

    `tell` is given a sentence at each stage. Raises ValueError if the dataset has too little to learn from.
    """
    torch.set_num_threads(settings.threads)
    folder.mkdir(parents=True, exist_ok=True)
    parts = split(dataset)
    targets = make_targets(dataset)
    chosen = np.flatnonzero(parts.training)
    if not len(chosen):
        raise ValueError("the corpus has no windows of training families on training devices")
    fold = folds(dataset, settings.folds, settings.seed)
    if len(np.unique(fold[chosen])) < 2:
        raise ValueError("the corpus needs windows of at least two training families")
    tell(f"learning from {len(chosen):,} windows of {len(np.unique(dataset.trace[chosen])):,} traces")
    votes, left_out = _weigh(dataset, targets, parts.training, fold, settings, tell)
    bad = targets.bad[chosen]
    forest = _forest(dataset, targets, parts.training, settings)
    tell("the forest has learned from all folds")
    network = _network(dataset, targets, parts.training, settings, "all folds", tell)
    models = Models(forest, network, votes)
    features = dataset.features[chosen].astype(np.float64)
    fit_novelty(features, fold[chosen], settings.seed).save(folder / NOVELTY)
    export_forest(forest, dataset.features.shape[1], folder)
    export_network(network, dataset.token.shape[1], folder)
    tell("measuring on what was never learned from")
    median, spread = _healthy(features[~bad])
    card = Card(
        schema=dataset.schema,
        features=tuple(dataset.feature_names.tolist()),
        kinds=tuple(dataset.kinds.tolist()),
        length=dataset.token.shape[1],
        channels=CHANNELS,
        votes=votes,
        threshold=balanced_threshold(bad, left_out[0]),
        healthy_median=median,
        healthy_spread=spread,
        data=_data(dataset, parts.training, targets),
        figures=(
            _figures("families of training, each left out once", dataset, targets, parts.training, left_out, settings),
            *_tested("unseen families on unseen devices", dataset, targets, parts.test, models, settings),
            *_tested("unseen families on the CPU", dataset, targets, parts.test_on_cpu, models, settings),
        ),
        reliability=reliability(bad, left_out[0]),
        limits=LIMITS,
        seed=settings.seed,
        made_with={"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}},
    )
    write_card(card, folder)
    return card


_LIBRARIES = ("numpy", "scikit-learn", "torch", "onnx")


def score(models: Models, dataset: Dataset, windows: IntArray) -> Vote:
    """What both models together say of some windows (numbers)."""
    forest = models.forest.predict(dataset.features[windows].astype(np.float32))
    return combine(models.votes, forest, predict(models.network, dataset, windows))


def _weigh(
    dataset: Dataset, targets: Targets, chosen: BoolArray, fold: IntArray, settings: Settings, tell: Tell
) -> tuple[Votes, Vote]:
    """The weights of the votes, and what both together say of each training window when its family is left out."""
    windows = np.flatnonzero(chosen)
    by_forest, by_network = _nothing(dataset), _nothing(dataset)
    for one in np.unique(fold[windows]).tolist():
        rest, out = chosen & (fold != one), np.flatnonzero(chosen & (fold == one))
        name = f"fold {one + 1} of {settings.folds}"
        forest = _forest(dataset, targets, rest, settings)
        tell(f"{name}: the forest has learned")
        network = _network(dataset, targets, rest, settings, name, tell)
        for said, vote in (
            (by_forest, forest.predict(dataset.features[out].astype(np.float32))),
            (by_network, predict(network, dataset, out)),
        ):
            said[0][out], said[1][out] = vote
    forest_vote, network_vote = ((said[0][windows], said[1][windows]) for said in (by_forest, by_network))
    weight = targets.weight[windows] * targets.is_labelled[windows]
    votes = fit_votes(targets.bad[windows], targets.kind[windows], weight, forest_vote, network_vote)
    return votes, combine(votes, forest_vote, network_vote)


def _nothing(dataset: Dataset) -> Vote:
    return np.zeros(len(dataset)), np.zeros((len(dataset), len(dataset.kinds)))


def _forest(dataset: Dataset, targets: Targets, chosen: BoolArray, settings: Settings) -> Forest:
    features = dataset.features[chosen].astype(np.float32)
    return fit_forest(features, targets.take(chosen), settings.seed, settings.threads, settings.trees)


def _network(
    dataset: Dataset, targets: Targets, chosen: BoolArray, settings: Settings, name: str, tell: Tell
) -> Network:
    def progress(at: Progress) -> None:
        if at.epoch % max(at.epochs // 8, 1) == 0 or at.epoch == at.epochs:
            tell(f"{name}: network, epoch {at.epoch} of {at.epochs}, loss {at.loss:.3f}")

    return fit_network(dataset, targets, chosen, settings.seed, settings.epochs, tell=progress)


def _tested(
    what: str, dataset: Dataset, targets: Targets, chosen: BoolArray, models: Models, settings: Settings
) -> list[Figures]:
    if not chosen.any():
        return []
    said = score(models, dataset, np.flatnonzero(chosen))
    return [_figures(what, dataset, targets, chosen, said, settings)]


def _figures(
    what: str, dataset: Dataset, targets: Targets, chosen: BoolArray, said: Vote, settings: Settings
) -> Figures:
    return measure(what, said_of(dataset.take(chosen), targets.bad[chosen], said), settings.seed)


def _healthy(features: FloatArray) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    """Median, and half the range between the quartiles, of each feature; None where no window has it."""
    has = ~np.all(np.isnan(features), axis=0)
    median, spread = np.full((2, features.shape[1]), np.nan)
    low, median[has], high = np.nanpercentile(features[:, has], (25, 50, 75), axis=0)
    spread[has] = (high - low) / 2
    return _or_none(median), _or_none(spread)


def _or_none(values: FloatArray) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else round(value, 4) for value in values.tolist())


def _data(dataset: Dataset, chosen: BoolArray, targets: Targets) -> Data:
    traces = np.unique(dataset.trace[chosen])
    main = targets.kind[chosen & targets.bad].argmax(axis=1)
    return Data(
        traces=len(traces),
        runs=len(np.unique(dataset.run[traces])),
        windows=int(chosen.sum()),
        bad_windows=int(targets.bad[chosen].sum()),
        families=tuple(np.unique(dataset.family[traces]).tolist()),
        devices=tuple(np.unique(dataset.device[traces]).tolist()),
        test_families=tuple(sorted(TEST_FAMILIES)),
        test_devices=tuple(sorted(TEST_DEVICES)),
        windows_by_kind=dict(
            zip(dataset.kinds.tolist(), np.bincount(main, minlength=len(dataset.kinds)).tolist(), strict=True)
        ),
    )
