"""The shipped models, as the product runs them: together, and each alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from torchtraceap.analyzer.detector.card import FOREST, NETWORK, Votes, read_card
from torchtraceap.analyzer.detector.combination import combine_bad, combine_kind
from torchtraceap.analyzer.detector.training.dataset import Dataset
from torchtraceap.analyzer.trace.model import BoolArray

from .method import Answer

_BATCH = 4096


class Shipped:
    """Forest and network of a folder, weighed by its card or by other votes."""

    def __init__(self, name: str, folder: Path, votes: Votes | None = None) -> None:
        self.name = name
        card = read_card(folder)
        self._votes = votes or card.votes
        self._kinds = card.kinds
        self._schema = card.schema
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        self._forest = onnxruntime.InferenceSession(str(folder / FOREST), options, ["CPUExecutionProvider"])
        self._network = onnxruntime.InferenceSession(str(folder / NETWORK), options, ["CPUExecutionProvider"])

    def fit(self, dataset: Dataset, chosen: BoolArray, bad: BoolArray) -> None:
        """They have learned already. Raises ValueError if the dataset is of other features or kinds."""
        if dataset.schema != self._schema or tuple(dataset.kinds.tolist()) != self._kinds:
            raise ValueError("the models were trained on other features or kinds than the corpus has: train them again")

    def answer(self, dataset: Dataset, chosen: BoolArray) -> Answer:
        """P(bad), and P(kind) of what is bad."""
        parts = [self._batch(dataset, rows) for rows in _batches(np.flatnonzero(chosen))]
        kinds = [part.kind for part in parts if part.kind is not None]
        return Answer(np.concatenate([part.bad for part in parts]), np.concatenate(kinds))

    def _batch(self, dataset: Dataset, rows: np.ndarray) -> Answer:
        forest = self._forest.run(["bad", "kind"], {"features": dataset.features[rows].astype(np.float32)})
        events = {"token": dataset.token[rows].astype(np.int64), "figures": dataset.figures[rows].astype(np.float32)}
        network = self._network.run(["bad", "kind"], events)
        forest_bad, forest_kind, network_bad, network_kind = (np.asarray(one) for one in (*forest, *network))
        bad = combine_bad(self._votes, forest_bad.ravel().astype(np.float64), network_bad.ravel().astype(np.float64))
        return Answer(bad, combine_kind(self._votes, forest_kind.astype(np.float64), network_kind.astype(np.float64)))


FOREST_ALONE = Votes(bad_forest=1.0, bad_network=0.0, bad_bias=0.0, kind_forest=1.0, kind_network=0.0)
NETWORK_ALONE = Votes(bad_forest=0.0, bad_network=1.0, bad_bias=0.0, kind_forest=0.0, kind_network=1.0)


def ours(folder: Path) -> tuple[Shipped, ...]:
    """Both together, the forest alone, the network alone."""
    return (
        Shipped("ours", folder),
        Shipped("forest alone", folder, FOREST_ALONE),
        Shipped("network alone", folder, NETWORK_ALONE),
    )


def _batches(rows: np.ndarray) -> list[np.ndarray]:
    return np.split(rows, range(_BATCH, len(rows), _BATCH)) if len(rows) else []
