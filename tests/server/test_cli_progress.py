"""The progress bar appears only after a while, only on a terminal, and leaves nothing behind."""

import io
import time

import pytest
from rich.console import Console

from torchtraceap.server.commands import progress


def drawn(work, *, terminal=True):
    """What is written to a terminal (or a file) while `work(reporter)` runs."""
    stream = io.StringIO()
    with progress.reporting(Console(file=stream, force_terminal=terminal, width=80)) as reporter:
        work(reporter)
    return stream.getvalue()


def slow(reporter):
    reporter.stage("reading big.json")
    reporter.fraction(0.5)
    time.sleep(0.4)


@pytest.fixture
def soon(monkeypatch):
    """Show the bar after a moment instead of a second."""
    monkeypatch.setattr(progress, "DELAY_S", 0.05)


def test_slow_work_shows_what_is_done(soon):
    assert "reading big.json" in drawn(slow)


def test_the_bar_is_wiped_away_at_the_end(soon):
    erase_line = "\x1b[2K"
    assert drawn(slow).rstrip().endswith(erase_line)


def test_quick_work_shows_nothing():
    assert drawn(lambda reporter: reporter.stage("reading small.json")) == ""


def test_a_file_gets_nothing(soon):
    assert drawn(slow, terminal=False) == ""


def test_an_error_passes_and_ends_the_bar(soon):
    def fail(reporter):
        slow(reporter)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        drawn(fail)


def test_a_file_s_name_is_shown_as_it_is(soon):
    shown = drawn(lambda reporter: (reporter.stage("reading [/bold]\x1b[5m.json"), time.sleep(0.2)))
    assert "reading [/bold]\u241b[5m.json" in shown
