"""Randomly chosen extents. Costs spread over decades, so sizes and counts are drawn evenly over their logarithm."""

from __future__ import annotations

import math
import random


def spread(rng: random.Random, least: float, most: float) -> float:
    """A number between two, evenly over its logarithm."""
    return math.exp(rng.uniform(math.log(least), math.log(most)))


def count(rng: random.Random, least: int, most: int) -> int:
    """A whole number between two, both included, evenly over its logarithm; `least` is 1 or more."""
    return min(most, int(spread(rng, least, most + 1)))
