"""The shipped models, run by onnxruntime: a timeline in, probabilities of its windows out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from ..timeline.model import Timeline
from ..trace.model import FloatArray, IntArray
from . import sequence
from .card import CARD, FOREST, NETWORK, NOVELTY, Card, read_card
from .combination import combine_bad, combine_kind
from .explain import Reason, explain
from .features.schema import FEATURES, NAMES
from .inputs import SCHEMA, Inputs, make_inputs
from .model import WindowScores
from .novelty import Novelty
from .session import DetectorError, Model, content_of
from .smoothing import are_single, median_of_region

SHIPPED = Path(__file__).with_name("model")
"""The models that the package comes with."""
_MOST_VOTE = 1e3
_MOST_MEDIAN = float(np.finfo(np.float16).max)
_MOST_WINDOWS = 1 << 53


@dataclass(frozen=True, slots=True)
class Detector:
    """Forest and network with what it takes to make one answer of theirs."""

    card: Card
    novelty: Novelty
    forest: Model
    network: Model

    @classmethod
    def load(cls, folder: Path = SHIPPED) -> Detector:
        """Load the models in `folder`. Raises DetectorError if that cannot be, or they do not fit."""
        card = _card(folder)
        features, kinds = len(card.features), len(card.kinds)
        events = (None, card.length)
        return cls(
            card=card,
            novelty=_novelty(folder, features),
            forest=Model.load(folder / FOREST, {"features": ("tensor(float)", (None, features))}, kinds),
            network=Model.load(
                folder / NETWORK,
                {
                    "token": ("tensor(int64)", events),
                    "figures": ("tensor(float)", (*events, len(card.channels))),
                    "features": ("tensor(float)", (None, features)),
                },
                kinds,
            ),
        )

    def look(self, timeline: Timeline) -> Look:
        """What it says of a trace, and can say more of. Raises DetectorError if a model fails."""
        inputs = make_inputs(timeline)
        return Look(self.score_inputs(inputs), inputs, self)

    def score(self, timeline: Timeline) -> WindowScores:
        """Probabilities of the windows of a trace. Raises DetectorError as `look`."""
        return self.look(timeline).scores

    def score_inputs(self, inputs: Inputs) -> WindowScores:
        """The same, of what `make_inputs` made."""
        windows = inputs.windows
        bad, kind = self.raw(inputs)
        return WindowScores(
            windows=windows,
            bad=median_of_region(windows.region, bad),
            kind=median_of_region(windows.region, kind),
            kinds=self.card.kinds,
            is_unknown=self.novelty.are_unknown(inputs.features[inputs.shown])[inputs.row],
            is_single=are_single(windows.region, bad, self.card.threshold),
            each_bad=bad,
            threshold=self.card.threshold,
            usual_bad=_share(self.card.data.bad_windows, self.card),
            usual_kind=np.array([_share(self.card.data.windows_by_kind.get(k, 0), self.card) for k in self.card.kinds]),
        )

    def raw(self, inputs: Inputs) -> tuple[FloatArray, FloatArray]:
        """P(bad), shape (windows,), and P(kind), shape (windows, kinds), of each window.

        The forest's word is on the window itself, the network's on the one that stands for it.
        """
        if not len(inputs.windows):
            return np.zeros(0), np.zeros((0, len(self.card.kinds)))
        events, features = inputs.events, inputs.features.astype(np.float32)
        by_forest = self.forest.run(features=features)
        by_network = self.network.run(
            token=events.token.astype(np.int64),
            figures=events.figures.astype(np.float32),
            features=features[inputs.shown],
        )
        bad = combine_bad(self.card.votes, by_forest.bad, by_network.bad[inputs.row])
        return bad, bad[:, None] * combine_kind(self.card.votes, by_forest.kind, by_network.kind[inputs.row])

    def explain(self, inputs: Inputs, windows: IntArray) -> tuple[tuple[Reason, ...], ...]:
        """For each of `windows` (indices) the features that raise its P(bad) most. Raises DetectorError as `score`."""
        medians = (np.nan if median is None else median for median in self.card.healthy_median)
        healthy = np.array(list(medians), dtype=np.float64)
        return explain(self._bad_by_forest, inputs.features[windows].astype(np.float64), FEATURES, healthy)

    def _bad_by_forest(self, features: FloatArray) -> FloatArray:
        return self.forest.run(features=features.astype(np.float32)).bad


@dataclass(frozen=True, slots=True)
class Look:
    """What a detector says of one trace."""

    scores: WindowScores
    inputs: Inputs
    detector: Detector

    def reasons(self, windows: IntArray) -> tuple[tuple[Reason, ...], ...]:
        """Why each of these windows (indices) counts as bad. Raises DetectorError if a model fails."""
        return self.detector.explain(self.inputs, windows)


def _share(windows: int, card: Card) -> float:
    """Of the windows learned from, kept from 0 and 1."""
    return (windows + 1) / (card.data.windows + 2)


def _card(folder: Path) -> Card:
    """The card, if it is one and the models are made for this version's inputs."""
    content_of(folder / CARD)
    try:
        card = read_card(folder)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DetectorError(f"{CARD} cannot be understood: {error}") from error
    if card.schema != SCHEMA:
        raise DetectorError(f"the models in {folder} are made for {card.schema}, this version makes {SCHEMA}")
    if card.features != NAMES or card.length != sequence.LENGTH or card.channels != sequence.CHANNELS:
        raise DetectorError(f"{CARD} names other features or events than its version has")
    if len(card.healthy_median) != len(card.features) or not card.kinds:
        raise DetectorError(f"{CARD} lacks kinds, or medians of its features")
    if not _has_sane_numbers(card):
        raise DetectorError(f"{CARD} has kinds twice, or figures that cannot be")
    return card


def _has_sane_numbers(card: Card) -> bool:
    """Whether all that answers are computed from is in its range."""
    data, votes = card.data, msgspec.structs.astuple(card.votes)
    return (
        len(set(card.kinds)) == len(card.kinds)
        and all(abs(vote) <= _MOST_VOTE for vote in votes)
        and 0 <= card.threshold <= 1
        and all(median is None or abs(median) <= _MOST_MEDIAN for median in card.healthy_median)
        and 0 <= data.windows <= _MOST_WINDOWS
        and all(0 <= windows <= data.windows for windows in (data.bad_windows, *data.windows_by_kind.values()))
    )


def _novelty(folder: Path, features: int) -> Novelty:
    content_of(folder / NOVELTY)
    try:
        novelty = Novelty.load(folder / NOVELTY)
    except (OSError, ValueError, KeyError) as error:
        raise DetectorError(f"{NOVELTY} cannot be used: {error}") from error
    if len(novelty.center) != features:
        raise DetectorError(f"{NOVELTY} is of {len(novelty.center)} features, not {features}")
    return novelty
