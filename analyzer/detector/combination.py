"""The votes of forest and network as one: a weighted sum of logits, fitted on families that neither had learned.

P(kind) of a window is P(bad) times P(kind | bad).
"""

from __future__ import annotations

import numpy as np

from ..trace.model import FloatArray
from .card import Votes

_LEAST = 1e-3
"""No vote is surer than this: a forest of few trees says 0 and 1 where it means rarely and mostly."""


def logit(probability: FloatArray) -> FloatArray:
    """log(p / (1 - p)), of probabilities that are kept from 0 and 1."""
    kept = np.clip(probability, _LEAST, 1 - _LEAST)
    return np.log(kept / (1 - kept))


def combine_bad(votes: Votes, forest: FloatArray, network: FloatArray) -> FloatArray:
    """P(bad), shape (windows,), from the two models' P(bad)."""
    return sigmoid(votes.bad_forest * logit(forest) + votes.bad_network * logit(network) + votes.bad_bias)


def combine_kind(votes: Votes, forest: FloatArray, network: FloatArray) -> FloatArray:
    """P(kind | bad), shape (windows, kinds), rows sum to 1, from the two models' P(kind | bad)."""
    sums = votes.kind_forest * np.log(forest + _LEAST) + votes.kind_network * np.log(network + _LEAST)
    powers = np.exp(sums - sums.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def sigmoid(values: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), for any x."""
    return 0.5 * (1 + np.tanh(0.5 * values))
