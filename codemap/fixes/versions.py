"""Comparing PyTorch versions as traces give them."""

from __future__ import annotations

import re


def is_older(version: str, than: tuple[int, int]) -> bool:
    """Whether a known version (`2.1.0+cu118`) is older; an unknown one ("") is taken as new."""
    found = re.match(r"(\d{1,9})\.(\d{1,9})", version)
    return found is not None and (int(found[1]), int(found[2])) < than
