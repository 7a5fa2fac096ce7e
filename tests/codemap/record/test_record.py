"""Whole runs of `torchtraceap record` on small programs."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.model import StepSource
from torchtraceap.analyzer.trace.model import Category
from torchtraceap.analyzer.trace.read import read_trace

from .runs import (
    MODEL,
    STEPS,
    TRAIN,
    command,
    environment,
    names,
    names_inside,
    run_recorded,
    step_marks,
    traces_in,
    write_program,
)

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A training program, recorded: output and exit code are its own."""
    folder = tmp_path_factory.mktemp("trained")
    text = TRAIN + (
        "print(sys.argv[1:], __name__, os.path.basename(__file__), os.path.basename(sys.path[0]), sys.stdin.read())\n"
        f"train({STEPS})\n"
        "sys.exit(7)\n"
    )
    path = write_program(folder, text)
    return folder, path, run_recorded(folder, [sys.executable, "program.py", "-o", "--name"], stdin="typed")


def test_the_program_runs_as_it_would_alone(trained):
    folder, _, ran = trained
    assert ran.code == 7
    assert ran.stdout.strip() == f"['-o', '--name'] __main__ program.py {folder.name} typed"
    assert all(line.startswith("torchtraceap: ") for line in ran.stderr.splitlines()), ran.stderr


def test_the_end_says_where_the_trace_is_and_what_it_cost(trained):
    _, _, ran = trained
    assert "torchtraceap analyze out/program-" in ran.stderr
    assert "2 full, 4 light, 3 plain (an optimizer's step ends each)" in ran.stderr
    assert " ms plain, " in ran.stderr and " ms light (" in ran.stderr and " ms full (" in ran.stderr


def test_a_training_trace_has_steps_stacks_shapes_and_memory(trained):
    trace = trained[2].trace
    assert build_timeline(trace).steps.source is StepSource.PROFILER
    assert len(step_marks(trace)) == 2
    assert trace.info.with_stack and trace.info.record_shapes and len(trace.memory.ts_ns)
    for mark in step_marks(trace):
        found = names_inside(trace, mark)
        assert found["Optimizer.step#SGD.step"] == 1
        assert found["aten::addmm"] == 2


def test_the_file_beside_the_trace_says_what_ran(trained):
    _, path, ran = trained
    recording = ran.trace.recording
    assert recording is not None
    assert recording.command[1:] == ("program.py", "-o", "--name")
    assert (recording.steps_by, len(recording.light_step_us), len(recording.full_step_us)) == ("optimizer", 4, 2)
    assert recording.environment["OMP_NUM_THREADS"] == "1"
    hashed = subprocess.run(["git", "hash-object", str(path)], capture_output=True, text=True, check=True)
    assert recording.sources == {"program.py": hashed.stdout.strip()}
    assert recording.precision.autocast == ""
    assert {"aten::addmm"} <= {total.name for total in recording.light_operators}
    (addmm,) = [total for total in recording.light_operators if total.name == "aten::addmm"]
    assert addmm.calls_per_step == pytest.approx(2)
    assert recording.notes == ()


def test_the_model_is_known_with_shapes_lines_and_connections(trained):
    _, path, ran = trained
    recording = ran.trace.recording
    root, first, last = recording.modules
    lines = path.read_text().splitlines()
    assert [module.path for module in recording.modules] == ["", "first", "last"]
    assert (root.inputs, root.outputs, root.calls_per_step) == (((2, 8),), ((2, 4),), 1)
    assert lines[root.line - 1].strip() == "def forward(self, x):"
    assert lines[first.defined_line - 1].strip() == "self.first = nn.Linear(8, 16)"
    assert first.arguments["in_features"] == "8" and first.arguments["bias"] == "True"
    assert {(p.name, p.shape) for p in last.parameters} == {("weight", (4, 16)), ("bias", (4,))}


def test_calls_of_modules_are_tagged_and_the_recorder_is_not_in_the_trace(trained):
    _, path, ran = trained
    trace = ran.trace
    tags = Counter(name for name in names(trace, Category.USER_ANNOTATION) if name.startswith("torchtraceap."))
    number = 1 + path.read_text().splitlines().index("        self.first = nn.Linear(8, 16)")
    assert tags[f"torchtraceap.module first program.py:{number}"] == 2
    assert sorted(tags.values()) == [2, 2, 2]
    assert not [name for name in trace.names if "codemap/record" in name]


def test_every_python_event_has_its_callers_exact_line(trained):
    _, path, ran = trained
    trace, recording = ran.trace, ran.trace.recording
    rows = trace.rows(Category.PYTHON_FUNCTION)
    known = dict(
        zip(
            recording.python_lines.id,
            zip(recording.python_lines.file, recording.python_lines.line, strict=True),
            strict=True,
        )
    )
    assert {int(trace.python_id[row]) for row in rows} == set(known)
    lines = path.read_text().splitlines()
    said = {
        (trace.name_of(row).split(" of ")[0], lines[line - 1].strip())
        for row in rows
        for file, line in [known[int(trace.python_id[row])]]
        if recording.files[file] == "program.py"
    }
    assert ("nn.Module: Linear_0", "hidden = self.first(x)") in said
    assert ("<built-in method mean", "hidden = hidden + hidden.mean()") in said
    assert ("torch/_tensor.py(", "loss.backward()") in {(name[:17], line) for name, line in said}
    wrong = [pair for pair in said if pair[0] == "<built-in method mean" and "mean()" not in pair[1]]
    assert not wrong


def test_an_operator_without_a_python_event_has_its_line(trained):
    _, path, ran = trained
    trace, recording = ran.trace, ran.trace.recording
    lines = path.read_text().splitlines()
    known = dict(zip(recording.operator_lines.id, recording.operator_lines.line, strict=True))
    rows = [row for row in trace.rows(Category.CPU_OP) if int(trace.external_id[row]) in known]
    said = Counter((trace.name_of(row), lines[known[int(trace.external_id[row])] - 1].strip()) for row in rows)
    assert said == {("aten::add", "hidden = hidden + hidden.mean()"): 2}


def test_a_crash_is_shown_and_what_there_was_is_written(tmp_path):
    write_program(
        tmp_path,
        TRAIN + "def fail(step):\n    if step == 5:\n        raise ValueError('as planned')\ntrain(20, fail)\n",
    )
    ran = run_recorded(tmp_path, [sys.executable, "program.py"], "--warm-up", "0", "--full", "20")
    assert ran.code == 1
    assert "ValueError: as planned" in ran.stderr and "in fail" in ran.stderr
    assert len(step_marks(ran.trace)) == 6


def test_ctrl_c_writes_what_there_is(tmp_path):
    text = TRAIN + "def then(step):\n    print(step, flush=True)\n    time.sleep(0.02)\ntrain(100000, then)\n"
    write_program(tmp_path, text)
    words = command("record", "-o", "out", "--warm-up", "1", "--full", "2", "--iterations", "100000", "--")
    process = subprocess.Popen(
        [*words, sys.executable, "program.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in whatever a script put behind
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == 20:
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the command and the program
    _, stderr = process.communicate(timeout=60)
    assert process.returncode in (1, 130), stderr
    assert "KeyboardInterrupt" in stderr
    (trace,) = traces_in(tmp_path)
    recording = read_trace(trace).recording
    assert recording is not None and len(recording.full_step_us) == 2 and recording.light_step_us


def test_a_request_to_end_is_passed_on_and_what_there_is_written(tmp_path):
    text = TRAIN + "def then(step):\n    print(step, flush=True)\n    time.sleep(0.02)\ntrain(100000, then)\n"
    write_program(tmp_path, text)
    process = subprocess.Popen(
        command("record", "-o", "out", "--warm-up", "0", "--full", "50", "--", sys.executable, "program.py"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == 5:
            break
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, stderr
    assert traces_in(tmp_path), stderr
    (trace,) = traces_in(tmp_path)
    assert len(step_marks(read_trace(trace))) >= 5


def test_loader_workers_record_nothing(tmp_path):
    loader = """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 400
    def __getitem__(self, i):
        return net.first(torch.ones(8)).detach()

def main(method):
    loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context=method)
    for i, batch in enumerate(loader):
        loss = net(batch[:, :8]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i == 25:
            break

if __name__ == "__main__":
    main(sys.argv[1])
"""
    write_program(tmp_path, TRAIN + loader)
    for method in ("fork", "spawn"):
        ran = run_recorded(tmp_path, [sys.executable, "program.py", method])
        assert ran.code == 0, ran.stderr
        (path,) = ran.traces
        assert "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__" in read_trace(path).names
        path.unlink()


def test_inference_is_parted_at_the_models_calls(tmp_path):
    text = MODEL + (
        "net.eval()\n"
        "prepare = nn.Dropout()\n"
        "with torch.no_grad():\n"
        f"    for i in range({STEPS}):\n"
        "        images = [prepare(torch.randn(8)) for _ in range(3)]\n"
        "        net(torch.stack(images)).argmax().item()\n"
    )
    write_program(tmp_path, text)
    ran = run_recorded(tmp_path, [sys.executable, "program.py"])
    recording = ran.trace.recording
    assert recording is not None
    assert (recording.steps_by, len(recording.full_step_us), len(recording.light_step_us)) == ("module", 2, 4)
    trace = ran.trace
    for mark in step_marks(trace):
        found = names_inside(trace, mark)
        assert (found["aten::addmm"], found["aten::item"], found["aten::stack"]) == (2, 1, 1)


def test_a_module_is_run_by_name_and_may_change_the_folder(tmp_path):
    write_program(tmp_path, "", "package/__init__.py")
    write_program(
        tmp_path, TRAIN + f"os.chdir('/')\ntrain({STEPS})\nprint(__spec__.name, sys.argv[1:])\n", "package/go.py"
    )
    ran = run_recorded(tmp_path, ["-m", "package.go", "word"])
    assert (ran.code, ran.stdout) == (0, "package.go ['word']\n")
    recording = ran.trace.recording
    assert recording is not None and "package/go.py" in recording.sources
    assert recording.python_lines.id and recording.operator_lines.id


def test_a_program_with_a_profiler_of_its_own_keeps_it(tmp_path):
    text = TRAIN + (
        "profiler = torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),\n"
        "    on_trace_ready=lambda p: p.export_chrome_trace('mine.json'))\n"
        f"with profiler:\n    train({STEPS}, lambda step: profiler.step())\n"
    )
    write_program(tmp_path, text)
    ran = run_recorded(tmp_path, [sys.executable, "program.py"])
    assert (ran.code, ran.traces) == (0, ())
    assert "uses a profiler of its own" in ran.stderr
    mine = json.loads((tmp_path / "mine.json").read_text())
    assert sum(event["name"].startswith("ProfilerStep#") for event in mine["traceEvents"]) == 2


def test_each_rank_of_a_job_has_its_trace(tmp_path):
    text = MODEL + (
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "model = nn.parallel.DistributedDataParallel(net)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"for step in range({STEPS}):\n"
        "    model(torch.randn(2, 8)).sum().backward()\n"
        "    optimizer.step()\n"
        "dist.destroy_process_group()\n"
    )
    write_program(tmp_path, text)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "program.py"]
    ran = run_recorded(tmp_path, launcher)
    assert ran.code == 0, ran.stderr
    recordings = [read_trace(path).recording for path in ran.traces]
    assert [(r.rank, r.world_size) for r in recordings if r] == [(0, 2), (1, 2)]
    assert [path.name.split(".")[1] for path in ran.traces] == ["rank0", "rank1"]
    assert [module.path for module in recordings[0].modules] == ["", "first", "last"]


def test_nothing_to_record_is_said(tmp_path):
    write_program(tmp_path, "print('no torch here')\n")
    ran = run_recorded(tmp_path, [sys.executable, "program.py"])
    assert (ran.code, ran.stdout, ran.traces) == (0, "no torch here\n", ())
    assert "never imported torch" in ran.stderr
    write_program(tmp_path, TRAIN + "train(2)\n")
    ran = run_recorded(tmp_path, [sys.executable, "program.py"], "--warm-up", "50")
    assert ran.code == 0 and "ended after 2 steps" in ran.stderr and "--warm-up 0" in ran.stderr


def test_a_folder_that_cannot_be_written_to_is_said_before_anything_runs(tmp_path):
    write_program(tmp_path, "print('ran')\n")
    (tmp_path / "out").write_text("a file")
    ran = run_recorded(tmp_path, [sys.executable, "program.py"])
    assert ran.code == 2 and ran.stdout == "" and "out" in ran.stderr


def test_another_sitecustomize_is_still_run_and_the_path_is_as_before(tmp_path):
    write_program(tmp_path, "print('theirs')\n", "site/sitecustomize.py")
    write_program(tmp_path, "import sys, sitecustomize\nprint(sitecustomize.__file__)\nprint(sys.path)\n")
    ran = run_recorded(tmp_path, [sys.executable, "program.py"], PYTHONPATH=str(tmp_path / "site"))
    first, file, path = ran.stdout.splitlines()[-3:]
    assert (first, file) == ("theirs", str(tmp_path / "site" / "sitecustomize.py"))
    assert "bootstrap" not in path


def test_a_block_of_a_program_is_recorded_from_within(tmp_path):
    text = TRAIN + (
        "from torchtraceap.codemap.record import recording\n"
        "with recording('out', iterations=4, full=2, warm_up=1) as run:\n"
        f"    train({STEPS})\n"
        "print(run.trace, run.overhead)\n"
        "from torch.nn.modules import module\n"
        "assert not module._global_forward_hooks and not module._global_forward_pre_hooks\n"
    )
    write_program(tmp_path, text)
    result = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False
    )
    assert result.returncode == 0, result.stderr
    (path,) = traces_in(tmp_path)
    assert result.stdout.startswith(f"{path} one step: ")
    assert len(step_marks(read_trace(path))) == 2


def test_compiled_modules_are_compiled_once(tmp_path):
    text = TRAIN + (
        "graphs = []\n"
        "def backend(graph, inputs):\n"
        "    graphs.append(graph)\n"
        "    return graph\n"
        "net = torch.compile(net, backend=backend)\n"
        f"train({STEPS})\n"
        "print(len(graphs))\n"
    )
    write_program(tmp_path, text)
    alone = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, env=environment(), check=True
    )
    ran = run_recorded(tmp_path, [sys.executable, "program.py"])
    assert (ran.code, ran.stdout) == (0, alone.stdout), ran.stderr
    assert "Warning" not in ran.stderr
    assert len(step_marks(ran.trace)) == 2


def test_the_trace_is_what_other_readers_know(trained):
    (path,) = trained[2].traces
    document = json.loads(gzip.decompress(path.read_bytes()))
    ids = {event["args"]["Python id"] for event in document["traceEvents"] if event.get("cat") == "python_function"}
    parents = {
        event["args"]["Python parent id"] for event in document["traceEvents"] if event.get("cat") == "python_function"
    }
    assert parents - {None} <= ids
