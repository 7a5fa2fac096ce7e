"""What each half of the corpus is good for: the forest grown without it, beside the forest alone. A network learned
anew each time would take four times as long."""

from __future__ import annotations

import numpy as np

from torchtraceap.analyzer.detector.training.dataset import Dataset
from torchtraceap.analyzer.detector.training.forest import Forest, fit_forest
from torchtraceap.analyzer.detector.training.targets import make_targets
from torchtraceap.analyzer.trace.model import BoolArray

from .method import Answer

_SEED = 0


class ForestWithout:
    """The forest alone, learned without the traces of one source ("cpu" or "simulated")."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self._source = source
        self._forest: Forest | None = None

    def fit(self, dataset: Dataset, chosen: BoolArray, bad: BoolArray) -> None:
        """Learn from the rest of the chosen windows."""
        kept = chosen & (dataset.source != self._source)[dataset.trace]
        features = dataset.features[kept].astype(np.float32)
        self._forest = fit_forest(features, make_targets(dataset).take(kept), _SEED)

    def answer(self, dataset: Dataset, chosen: BoolArray) -> Answer:
        """Probabilities, as the trees give them."""
        assert self._forest is not None, "it has not learned yet"
        return Answer(*self._forest.predict(dataset.features[chosen].astype(np.float32)))


def ablations() -> tuple[ForestWithout, ...]:
    """Both, ready to learn."""
    return (
        ForestWithout("forest alone, without the simulator's traces", "simulated"),
        ForestWithout("forest alone, without the CPU's traces", "cpu"),
    )
