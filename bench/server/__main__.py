"""Measures the server's budgets: `python -m bench.server`."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..results import Figure, Target, publish
from . import many
from .session import SERVE, Session

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "leaves"
RUNS = 5
REPEATS = 60
SAVES = 60
READY_S = 3.0
"""After so long the workers have their imports behind them, as in an editor that has been open for a while."""
TARGETS = {
    "initialize_s": Target(at_most=1.0),
    "idle_rss_mb": Target(at_most=100.0),
    "code_action_p95_ms": Target(at_most=30.0),
    "hover_p95_ms": Target(at_most=30.0),
    "save_p95_ms": Target(at_most=150.0),
    "landed_over_budget_s": Target(at_most=0.0),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure everything; 0 if all budgets are kept."""
    argparse.ArgumentParser(prog="python -m bench.server", description=__doc__).parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-server-") as folder:
        figures = [*start(Path(folder)), *with_many_findings(Path(folder)), *landing(Path(folder))]
    notes = [
        "landed_s: from the trace's last byte to its diagnostics; the budget is twice analysis_s plus 0.5 s",
        f"p95 over {REPEATS} requests and {SAVES} saves, {many.FINDINGS} findings in a file of {many.LINES} lines",
    ]
    return (
        0 if publish("server", figures, targets=TARGETS, packages=("pygls", "lsprotocol", "libcst"), notes=notes) else 1
    )


def start(folder: Path) -> list[Figure]:
    """From nothing to initialized, and what the main process then weighs. Medians over several starts."""
    root = folder / "empty"
    root.mkdir()
    seconds, cpu_seconds, megabytes = [], [], []
    for _ in range(RUNS):
        session = Session(root)
        seconds.append(session.initialized_s)
        cpu_seconds.append(cpu_s(session.process.pid))
        time.sleep(1.0)
        megabytes.append(rss_mb(session.process.pid))
        session.close()
    return [
        Figure("start", "initialize_s", statistics.median(seconds)),
        Figure("start", "initialize_cpu_s", statistics.median(cpu_seconds)),
        Figure("start", "idle_rss_mb", statistics.median(megabytes)),
    ]


def with_many_findings(folder: Path) -> list[Figure]:
    """Requests and saves in a large file full of findings."""
    root = folder / "many"
    (root / "runs").mkdir(parents=True)
    file = root / "many.py"
    text = many.source()
    file.write_text(text)
    session = Session(root, (sys.executable, str(Path(many.__file__))))
    uri = session.open(file, text)
    (root / "runs" / "many.json").write_bytes(msgspec.json.encode(many.report()))
    session.wait_for_diagnostics(uri, lambda diagnostics: len(diagnostics) == many.FINDINGS)
    time.sleep(READY_S)
    document = {"uri": uri}
    actions, hovers = [], []
    for number in range(REPEATS):
        line = many.location(number * 8).line - 1
        span = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 0}}
        context = {"diagnostics": []}
        found, seconds = session.request(
            "textDocument/codeAction", {"textDocument": document, "range": span, "context": context}
        )
        actions.append(seconds)
        at = {"line": line, "character": 14}
        text_shown, seconds = session.request("textDocument/hover", {"textDocument": document, "position": at})
        hovers.append(seconds)
        if not found or not text_shown:
            raise RuntimeError(f"nothing on line {line}")
    saves = [save(session, uri, number) for number in range(SAVES)]
    session.close()
    return [
        Figure("500 findings", "code_action_p95_ms", 1000 * p95(actions)),
        Figure("500 findings", "hover_p95_ms", 1000 * p95(hovers)),
        Figure("500 findings", "save_p95_ms", 1000 * p95(saves)),
    ]


def save(session: Session, uri: str, number: int) -> float:
    """Fix one loader by hand and save: seconds until its diagnostic is gone."""
    place = many.location(number * 8)
    end = {"line": place.line - 1, "character": place.end_column - 2}
    change = {"range": {"start": end, "end": end}, "text": ", num_workers=2"}
    document = {"uri": uri, "version": number + 2}
    session.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
    session.wait_for_diagnostics(uri, lambda diagnostics: True)
    saved_s = time.perf_counter()
    session.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    wanted = many.FINDINGS - number - 1
    return session.wait_for_diagnostics(uri, lambda diagnostics: len(diagnostics) == wanted) - saved_s


def landing(folder: Path) -> list[Figure]:
    """The bundled example: a trace is written into a watched folder of its project."""
    traces = sorted((EXAMPLE / "traces").glob("*.json.gz"))
    figures: list[Figure] = []
    for trace in traces:
        root = folder / trace.name.partition(".")[0]
        shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("traces"))
        (root / "runs").mkdir()
        session = Session(root, SERVE)
        time.sleep(READY_S)
        shutil.copyfile(trace, root / "runs" / trace.name)
        landed_s = time.perf_counter()
        published_s, _ = session.wait(_shows_something)
        _, log = session.wait(lambda message: "analysed in" in str(message.get("params")))
        analysis_s = float(str(log["params"]["message"]).rpartition("analysed in ")[2].removesuffix(" s"))
        session.close()
        seconds = published_s - landed_s
        figures += [
            Figure(trace.name, "analysis_s", analysis_s),
            Figure(trace.name, "landed_s", seconds),
            Figure(trace.name, "landed_over_budget_s", seconds - (2 * analysis_s + 0.5)),
        ]
    return figures


def _shows_something(message: dict) -> bool:
    return message.get("method") == "textDocument/publishDiagnostics" and bool(message["params"]["diagnostics"])


def cpu_s(process_id: int) -> float:
    """Processor time of a process so far: what starting it takes on a machine with nothing else to do (Linux)."""
    fields = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(process_id: int) -> float:
    """Resident memory of a process, in MB (Linux)."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def p95(values: list[float]) -> float:
    """The value that 95 % are at most."""
    return statistics.quantiles(values, n=20)[-1]


if __name__ == "__main__":
    sys.exit(main())
