"""Which files are the ranks of one job."""

import json
import os
import shutil

import pytest

from tests.shared import shared
from torchtraceap.analyzer.trace.model import Distributed
from torchtraceap.analyzer.trace.peek import peek_distributed
from torchtraceap.server.jobs import Pipeline
from torchtraceap.server.messages import Analyze
from torchtraceap.server.ranks import group_ranks, ranks_beside

from .cli import TRACE, torchtraceap

MINUTE_S = 60
NOON_MS = 1_790_000_000_000


def write(folder, name, rank=None, world_size=None, *, at_s=NOON_MS / 1000):
    """A trace without events that says which rank it is, last changed at a time."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    document: dict[str, object] = {"schemaVersion": 1}
    if rank is not None:
        document["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size}
    path.write_text(json.dumps({**document, "traceEvents": []}))
    os.utime(path, (at_s, at_s))
    return path


def names(groups):
    return [[path.name for path in group] for group in groups]


def test_ranks_called_by_their_number_are_one_job_in_their_order(tmp_path):
    paths = [write(tmp_path, f"rank{r}.pt.trace.json", r, 12) for r in (10, 2, 0, 11)]
    assert names(group_ranks(paths)) == [[f"rank{r}.pt.trace.json" for r in (0, 2, 10, 11)]]


def test_files_of_the_trace_handler_are_told_apart_by_what_they_say_of_themselves(tmp_path):
    paths = [write(tmp_path, f"host{r % 2}_{4000 + 7 * r}.{NOON_MS + 40 * r}.pt.trace.json", r, 4) for r in range(4)]
    assert group_ranks(paths) == [tuple(paths)]


def test_two_recordings_of_one_run_are_two_jobs(tmp_path):
    first = [write(tmp_path, f"h_{50 + r}.{NOON_MS + r}.pt.trace.json", r, 2) for r in range(2)]
    second = [write(tmp_path, f"h_{50 + r}.{NOON_MS + 90_000 + r}.pt.trace.json", r, 2) for r in range(2)]
    assert group_ranks([*second, *first]) == [tuple(second), tuple(first)]


def test_steps_in_the_name_part_jobs_whatever_the_files_times(tmp_path):
    paths = [write(tmp_path, f"worker{r}_step_{step}.json", r, 2) for step in (12, 20) for r in range(2)]
    assert group_ranks(paths) == [tuple(paths[:2]), tuple(paths[2:])]


def test_a_rank_of_yesterday_is_no_rank_of_today(tmp_path):
    old = write(tmp_path, "rank0.json", 0, 2)
    new = write(tmp_path, "rank1.json", 1, 2, at_s=NOON_MS / 1000 + 600 * MINUTE_S)
    assert group_ranks([old, new]) == [(old,), (new,)]


def test_ranks_in_folders_of_their_own(tmp_path):
    paths = [write(tmp_path, f"rank_{r}/trace.json", r, 3) for r in range(3)]
    assert group_ranks(paths) == [tuple(paths)]
    assert ranks_beside(paths[1]) == tuple(paths)


def test_a_rank_that_cannot_be_read_belongs_to_the_job_it_is_called_like(tmp_path):
    paths = [write(tmp_path, f"worker{r}.json", r, 3) for r in range(3)]
    paths[1].write_bytes(b"\x1f\x8b\x00\x01 no gzip")
    os.utime(paths[1], (NOON_MS / 1000, NOON_MS / 1000))
    assert group_ranks(paths) == [tuple(paths)]


def test_runs_that_only_look_numbered_stay_apart(tmp_path):
    # A world of one, no word of a rank, and names that speak of workers but files that do not.
    alone = [write(tmp_path, f"rank{r}_of_one.json", 0, 1) for r in range(2)]
    plain = [write(tmp_path, f"run{r}.json") for r in range(2)]
    loaders = [write(tmp_path, f"worker{r}_test.json") for r in range(2)]
    paths = [*alone, *plain, *loaders]
    assert sorted(group_ranks(paths)) == sorted((path,) for path in paths)
    assert ranks_beside(plain[0]) == (plain[0],)


def test_names_that_say_rank_are_enough(tmp_path):
    paths = [write(tmp_path, f"trace_rank{r}.json") for r in range(2)]
    assert group_ranks(paths) == [tuple(paths)]


def test_the_head_of_a_trace_tells_its_rank(tmp_path):
    path = shared("traces", "S16_dlrm_8ranks_v100", "worker3_step_12.1694128201557.pt.trace.json.gz")
    assert peek_distributed(path) == Distributed("nccl", 3, 8)
    assert peek_distributed(shared("traces", "S15_dtu_resnet18_cpu.json")) is None
    assert peek_distributed(tmp_path / "missing.json") is None
    late = tmp_path / "late.json"
    late.write_text('{"traceEvents": [{"name": "distributedInfo"}], "distributedInfo": {"rank": 5, "world_size": 9}}')
    assert peek_distributed(late) is None, "the events are not read for it"


@pytest.fixture
def job(tmp_path):
    folder = tmp_path / "runs"
    shutil.copytree(shared("traces", "S16_dlrm_8ranks_v100"), folder)
    for path in folder.iterdir():
        path.chmod(0o644)
    return folder


def analyzed(folder):
    result = torchtraceap("analyze", folder, "--source", folder, "--format", "json", "--fail-on", "never")
    return result, json.loads(result.stdout)


def test_a_folder_of_ranks_is_one_analysis(job):
    result, document = analyzed(job)
    assert result.exit_code == 0, result.stderr
    assert [path.rpartition("/")[2][:7] for path in document["trace"]["paths"]] == [f"worker{r}" for r in range(8)]
    assert document["trace"]["problems"] == []
    by_slug = {finding["slug"]: finding for finding in reversed(document["findings"])}
    assert "rank 7" in by_slug["straggler-rank"]["message"]
    assert by_slug["straggler-rank"]["severity"] != "hint"
    assert by_slug["exposed-allreduce"]["severity"] != "hint"
    assert "seen in" not in by_slug["exposed-allreduce"]["message"]


def test_missing_and_damaged_ranks_are_said_and_not_fatal(job):
    next(job.glob("worker5*")).unlink()
    next(job.glob("worker2*")).write_bytes(b"\x1f\x8bnot a trace")
    cut = next(job.glob("worker4*"))
    cut.write_bytes(cut.read_bytes()[:40_000])
    result, document = analyzed(job)
    assert result.exit_code == 0, result.stderr
    assert len(document["trace"]["paths"]) == 6
    problems = document["trace"]["problems"]
    assert any("worker2" in problem for problem in problems)
    assert any(problem.startswith("rank 4: ") for problem in problems)
    assert "of 8 ranks the job has 6; missing: 2, 5" in problems
    assert any(problem.startswith("not compared") and problem.endswith(": 4") for problem in problems)
    assert any("rank 7" in finding["message"] for finding in document["findings"])


def test_a_job_of_which_nothing_can_be_read_is_an_error(tmp_path):
    for rank in range(2):
        write(tmp_path, f"rank{rank}.json", rank, 2)
    result = torchtraceap("analyze", tmp_path, "--source", tmp_path)
    assert result.exit_code == 2
    assert "rank0.json" in result.stderr and "rank1.json" in result.stderr


def analyzed_by_worker(trace, root):
    job = Analyze(1, str(trace), str(root), {}, 1.0, "auto", str(root / "report.json"))
    return Pipeline("analysis").analyze(job, lambda share, stage: None)


def test_the_worker_analyses_the_ranks_that_lie_beside_a_trace(job, tmp_path):
    whole = sorted(job.iterdir())
    half_written = whole[6]
    half_written.write_bytes(half_written.read_bytes()[:20_000])
    answer = Pipeline("analysis").analyze(
        Analyze(1, str(whole[3]), str(tmp_path), {}, 1.0, "auto", str(tmp_path / "report.json")),
        lambda share, stage: None,
    )
    assert [path.rpartition("/")[2] for path in answer.report.trace.paths] == [
        path.name for path in whole if path is not half_written
    ]
    assert any("rank 7" in finding.message for finding in answer.report.findings)
    assert any("missing: 6" in problem for problem in answer.report.trace.problems)


def test_the_worker_takes_traces_that_only_look_like_ranks_by_themselves(tmp_path):
    for rank in range(2):
        shutil.copy(TRACE, tmp_path / f"rank{rank}.pt.trace.json.gz")
    trace = tmp_path / "rank1.pt.trace.json.gz"
    answer = analyzed_by_worker(trace, tmp_path)
    assert answer.report.trace.paths == (str(trace),)
