"""Programs that end, or fork, in ways that a recorder must not get into the way of."""

from __future__ import annotations

import sys

import pytest

from torchtraceap.codemap.record import recording

from .runs import QUICK, STEPS, TRAIN, run_recorded, step_marks, write_program

pytest.importorskip("torch")


@pytest.mark.parametrize("fork_at", [1, 4, 6, 11, 29])
def test_a_forked_child_runs_on_and_ends_as_if_alone(tmp_path, fork_at):
    text = TRAIN + (
        "import atexit\n"
        "pid = 1\n"
        "def then(step):\n"
        "    global pid\n"
        f"    if step == {fork_at}:\n"
        "        pid = os.fork()\n"
        f"train({STEPS}, then)\n"
        "if pid:\n"
        "    print('child ended with', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "else:\n"
        "    atexit.register(print, 'child says goodbye')\n"
        "    sys.exit(5)\n"
    )
    write_program(tmp_path, text)
    ran = run_recorded(tmp_path, [sys.executable, "program.py"])
    assert (ran.code, ran.stdout) == (0, "child says goodbye\nchild ended with 5\n"), ran.stderr
    assert len(ran.traces) == 1
    assert ran.stderr.count(" full, ") == 1, ran.stderr


def test_what_was_written_is_told_of_whichever_way_the_program_ends(tmp_path):
    write_program(tmp_path, TRAIN + "train(22)\nos._exit(7)\n")
    ran = run_recorded(
        tmp_path, [sys.executable, "program.py"], "--warm-up", "1", "--full", "2", "--iterations", "1000"
    )
    assert ran.code == 7 and len(ran.traces) == 1
    assert "torchtraceap analyze out/program-" in ran.stderr and "nothing was recorded" not in ran.stderr


@pytest.mark.parametrize("end", ["os._exit(7)", "os.kill(os.getpid(), 9)"])
def test_an_end_that_leaves_no_time_to_write_is_said(tmp_path, end):
    write_program(tmp_path, TRAIN + f"train(3)\n{end}\n")
    ran = run_recorded(tmp_path, [sys.executable, "program.py"], "--warm-up", "50")
    assert ran.code in (7, 137) and not ran.traces
    assert "left no time to write" in ran.stderr


def test_a_program_that_deletes_its_working_folder_is_recorded(tmp_path):
    (tmp_path / "inner").mkdir()
    text = TRAIN + (
        "import shutil\n"
        "os.chdir('inner')\n"
        "def then(step):\n"
        "    if step == 1:\n"
        "        shutil.rmtree(os.getcwd())\n"
        f"train({STEPS}, then)\n"
        "print(os.path.exists('.'), 'ok')\n"
    )
    write_program(tmp_path, text)
    ran = run_recorded(tmp_path, [sys.executable, "program.py"])
    assert (ran.code, ran.stdout.split()[-1]) == (0, "ok"), ran.stderr
    assert len(step_marks(ran.trace)) == 2
    assert not (tmp_path / "inner").exists()


def test_the_command_outlives_its_own_working_folder(tmp_path):
    (tmp_path / "inner").mkdir()
    write_program(
        tmp_path / "inner", TRAIN + f"import shutil\nshutil.rmtree(os.getcwd())\ntrain({STEPS})\nsys.exit(9)\n"
    )
    ran = run_recorded(tmp_path / "inner", [sys.executable, "program.py"])
    assert ran.code == 9 and len(ran.traces) == 1, ran.stderr
    assert str(ran.traces[0]) in ran.stderr


def test_a_trace_that_cannot_be_written_is_the_first_thing_said(tmp_path):
    text = TRAIN + (
        "def then(step):\n"
        "    if step == 1:\n"
        "        os.rmdir('out')\n"
        "        open('out', 'w').close()\n"
        f"train({STEPS}, then)\n"
        "print('ok')\n"
    )
    write_program(tmp_path, text)
    ran = run_recorded(tmp_path, [sys.executable, "program.py"])
    assert (ran.code, ran.stdout) == (0, "ok\n"), ran.stderr
    assert ran.stderr.splitlines() == [f"torchtraceap: nothing was recorded: {tmp_path / 'out'}: File exists"]


@pytest.mark.parametrize("name", ["../escaped", "a/b", "/escaped", "..", ".", "a\\b", "a\nb", "x" * 161, "\u00e9" * 81])
def test_a_name_that_is_no_plain_file_name_is_refused_before_anything_runs(tmp_path, name):
    write_program(tmp_path, "print('ran')\n")
    ran = run_recorded(tmp_path, [sys.executable, "program.py"], "--name", name)
    assert (ran.code, ran.stdout) == (2, "") and "--name" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]
    with pytest.raises(ValueError, match="name"), recording(tmp_path / "out", name=name):
        pass


def test_the_longest_name_fits(tmp_path):
    write_program(tmp_path, TRAIN + f"train({STEPS})\n", "p" * 240 + ".py")
    ran = run_recorded(tmp_path, [sys.executable, "p" * 240 + ".py"], *QUICK, "--name", "x" * 160)
    assert [path.name for path in ran.traces] == ["x" * 160 + ".pt.trace.json.gz"], ran.stderr
    ran = run_recorded(tmp_path, [sys.executable, "p" * 240 + ".py"])
    assert len(ran.traces) == 2, ran.stderr
