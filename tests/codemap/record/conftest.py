"""What these tests share."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def nothing_compiled() -> None:
    """Forget what earlier tests of this process compiled: a recorder leaves programs that compile alone."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        dynamo.counters.clear()
