"""Only the profiler's own lines are kept from stderr."""

from __future__ import annotations

import os

from torchtraceap.codemap.record.noise import quiet

LINES = (
    "USDT:2026-11-30 17:24:12 8541:8541 SyncActivityProfilerHandler.cpp:52] profiler_start",
    "[W1130 17:37:18.887872568 CPUAllocator.cpp:245] Memory block of unknown size was allocated before",
    "[rank1]:[W1130 18:48:02.823874655 CPUAllocator.cpp:245] Memory block of unknown size was allocated before",
)


def test_the_profilers_lines_are_taken_out_and_others_left(capfd):
    with quiet():
        for line in (*LINES, "a warning of the program", "[W1130 17:37:18.1 Something.cpp:1] another"):
            os.write(2, f"{line}\n".encode())
    assert capfd.readouterr().err == "a warning of the program\n[W1130 17:37:18.1 Something.cpp:1] another\n"


def test_what_is_written_before_an_error_is_not_lost(capfd):
    try:
        with quiet():
            os.write(2, b"why\n")
            raise ValueError
    except ValueError:
        pass
    assert capfd.readouterr().err == "why\n"
