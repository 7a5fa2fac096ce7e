"""The command line as a whole: help, version, patterns, doctor."""

import json
import signal
import sys
from importlib.metadata import version

import pytest

from torchtraceap.analyzer.patterns.registry import all_patterns
from torchtraceap.server.cli import COMMANDS, cli, main

from .cli import LEAVES, TRACE, start, torchtraceap


def test_version():
    assert torchtraceap("--version").stdout.strip() == f"torchtraceap, version {version('torchtraceap')}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(command):
    result = torchtraceap(command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: torchtraceap {command}")


def test_help_lists_the_commands_and_an_unknown_one_is_an_error():
    assert all(f"\n  {command} " in torchtraceap("--help").stdout for command in COMMANDS)
    assert cli.list_commands(None) == list(COMMANDS)
    result = torchtraceap("analyse")
    assert result.exit_code == 2
    assert "No such command 'analyse'" in result.stderr


def test_patterns_are_listed():
    rows = json.loads(torchtraceap("patterns", "--format", "json").stdout)
    assert [row["code"] for row in rows] == [pattern.code for pattern in all_patterns()]
    assert {row["fix"] for row in rows} <= {"safe", "unsafe", "advice"}
    text = torchtraceap("patterns").stdout
    assert all(row["slug"] in text for row in rows)


def test_every_pattern_has_a_page():
    rows = json.loads(torchtraceap("patterns", "--format", "json").stdout)
    assert rows
    assert [row["slug"] for row in rows if row["page"] is None] == []


def test_doctor_names_what_is_there_and_how_to_get_the_rest():
    result = torchtraceap("doctor")
    assert result.exit_code == 0, result.stdout
    assert f"ok libcst                   {version('libcst')}" in result.stdout
    missing = [line for line in result.stdout.splitlines() if "not installed" in line]
    assert all("->  pip install 'torchtraceap[" in line for line in missing)


def test_doctor_says_what_optional_packages_are_used_for_and_names_no_other():
    lines = {line.split()[1]: line for line in torchtraceap("doctor").stdout.splitlines()}
    assert "(to record programs; analysing never needs it)" in lines["torch"]
    assert "(to train the detector again; analysing never needs it)" in lines["scikit-learn"]
    assert not {"transformers", "bitsandbytes"} & set(lines)


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGPIPE")
@pytest.mark.parametrize("command", ["analyze", "patterns"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reader_that_leaves_early_is_no_crash_and_no_finding(command, form):
    process = start(command, *([TRACE, "--source", LEAVES] if command == "analyze" else []), "--format", form)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) == -signal.SIGPIPE
    process.stderr.close()


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_a_terminal_of_any_encoding_will_do(tmp_path, form):
    trace = tmp_path / "spür.json.gz"
    trace.write_bytes(TRACE.read_bytes())
    process = start("analyze", trace, "--source", LEAVES, "--format", form, PYTHONIOENCODING="ascii")
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, b"")
    assert ("sp\\xfcr" if form == "text" else "spür").encode() in output


def test_errors_exit_with_2_and_findings_with_1_also_from_a_shell(tmp_path):
    here = ["analyze", TRACE, "--source", LEAVES]
    cases = (
        (["analyze", "nowhere"], 2),
        (here, 1),
        ([*here, "--output", tmp_path / "no" / "where"], 2),
        (["--help"], 0),
    )
    for arguments, code in cases:
        process = start(*arguments)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == code
        assert (errors == b"") == (code < 2)
        assert b"Traceback" not in errors


def test_a_fault_of_ours_does_not_pass_for_findings(monkeypatch, capsys):
    def broken(**_):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(cli, "main", broken)
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert exit_info.value.code == 2
    assert "ZeroDivisionError: ours" in capsys.readouterr().err
