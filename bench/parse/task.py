"""One measured task in a process of its own: `python -m bench.parse.task NAME PATH` prints what it took, as JSON."""

from __future__ import annotations

import argparse
import json
import logging
import resource
import sys
import time
from collections.abc import Callable, Sequence, Sized
from pathlib import Path

STATUS = Path("/proc/self/status")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a task on a trace and print `cpu_s` and `rss_bytes`, the peak above what the imports take."""
    parser = argparse.ArgumentParser(prog="python -m bench.parse.task", description=__doc__)
    parser.add_argument("name", choices=TASKS)
    parser.add_argument("path", type=Path)
    chosen = parser.parse_args(arguments)
    task = TASKS[chosen.name](chosen.path)
    floor = peak_rss_bytes()
    start = time.process_time()
    kept = task()
    cpu_s = time.process_time() - start
    print(json.dumps({"cpu_s": cpu_s, "rss_bytes": peak_rss_bytes() - floor, "events": len(kept)}))


def load_json(path: Path) -> Callable[[], Sized]:
    """`json.loads` of bytes in memory."""
    text = path.read_bytes()
    return lambda: json.loads(text)


def load_orjson(path: Path) -> Callable[[], Sized]:
    """`orjson.loads` of bytes in memory."""
    import orjson

    text = path.read_bytes()
    return lambda: orjson.loads(text)


def load_hta(path: Path) -> Callable[[], Sized]:
    """HTA's own parse of one trace file into its data frame."""
    from hta.common.trace_parser import ParserConfig, parse_trace_dataframe

    logging.disable()
    return lambda: parse_trace_dataframe(str(path), ParserConfig.get_default_cfg())[1]


def read(path: Path) -> Callable[[], Sized]:
    """Our reader: file to columns."""
    from torchtraceap.analyzer.trace.read import read_trace

    return lambda: read_trace(path)


def analysis(path: Path) -> Callable[[], Sized]:
    """Our whole analysis: file to findings."""
    from torchtraceap.analyzer.analysis import analyze
    from torchtraceap.analyzer.assess import price_all
    from torchtraceap.analyzer.patterns.registry import all_patterns
    from torchtraceap.analyzer.trace.read import read_trace

    all_patterns()  # imports them

    def run() -> Sized:
        found = analyze(read_trace(path))
        price_all(found)
        return found.timeline.trace

    return run


TASKS = {"json": load_json, "orjson": load_orjson, "hta": load_hta, "read": read, "analysis": analysis}


def peak_rss_bytes() -> int:
    """The largest resident set this process ever had."""
    if STATUS.is_file():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
