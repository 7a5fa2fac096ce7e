"""The extra measurements in a recording that really runs; the GPU's part goes as far as it can without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from torchtraceap.analyzer.trace.read import read_trace  # noqa: E402
from torchtraceap.codemap.record import counters  # noqa: E402
from torchtraceap.codemap.record.context import Run, recording  # noqa: E402


def train(steps: int) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def recorded(folder: Path, work: Callable[[], None], **options: bool | str) -> Run:
    with recording(folder, iterations=2, full=2, warm_up=1, **options) as run:  # pyright: ignore[reportArgumentType]
        work()
    return run


def test_counters_without_a_device_cost_nothing_but_a_note(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    run = recorded(tmp_path, lambda: train(40), counters=True)
    assert run.trace is not None
    assert [note for note in run.notes if "counters" in note] == [
        "--counters: there is no CUDA device to read counters of"
    ]


@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_the_range_profilers_step_is_taken_for_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a device: torch's profiler really starts, stops and writes; only the ranges are missing."""
    monkeypatch.setattr(counters, "unavailable", lambda torch: "")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    run = recorded(tmp_path, lambda: train(40), counters=True)
    assert run.trace is not None, run.notes
    assert not [note for note in run.notes if "profiler of its own" in note]
    (note,) = [note for note in run.notes if "counters" in note]
    assert "gave no counters" in note or "ERR_NVGPUCTRPERM" in note
    assert len(read_trace(run.trace).counters) == 0


def test_counters_of_nsight_compute_stand_beside_the_trace(tmp_path: Path) -> None:
    table = tmp_path / "counters.csv"
    table.write_text('"ID","Kernel Name","dram__bytes_read.sum"\n"","","Kbyte"\n"0","gemm","3"\n', "utf-8")
    run = recorded(tmp_path / "runs", lambda: train(30), ncu=str(table))
    assert run.trace is not None
    found = read_trace(run.trace).counters
    assert (found.source, found.kernels, found.values.tolist()) == ("recording", ("gemm",), [[3000.0]])


def test_a_wrong_file_of_counters_is_a_note(tmp_path: Path) -> None:
    table = tmp_path / "counters.csv"
    table.write_text("nothing\n", "utf-8")
    run = recorded(tmp_path / "runs", lambda: train(30), ncu=str(table))
    assert run.trace is not None
    assert any("no counters of kernels" in note for note in run.notes)


def test_attention_of_a_model_that_has_none_is_said(tmp_path: Path) -> None:
    run = recorded(tmp_path, lambda: train(30), attention=True)
    assert run.trace is not None
    assert "--attention: no attention was found in the model" in run.notes
