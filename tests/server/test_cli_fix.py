"""`torchtraceap fix` changes what it says, nothing else, and never half a file."""

import importlib.util
import shutil
import subprocess

import pytest

from torchtraceap.codemap.project import open_workspace
from torchtraceap.server.commands.fix import unified_diff, write_source

from .cli import LEAVES, TRACE, torchtraceap

CODING = "# -*- coding: latin-1 -*-\r\nname = '\xe9t\xe9'\r\n"


@pytest.fixture
def project(tmp_path):
    """A copy of the example's source."""
    shutil.copytree(LEAVES / "src", tmp_path / "src")
    return tmp_path


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_diff_writes_nothing_and_patch_takes_it(project):
    before = contents(project)
    result = torchtraceap("fix", TRACE, "--source", project, "--select", "unfused-attention", "--diff")
    assert result.exit_code == 0, result.stderr
    assert contents(project) == before
    assert "+" in result.stdout and "scaled_dot_product_attention" in result.stdout
    (project / "fix.diff").write_text(result.stdout, "utf-8")
    subprocess.run(["git", "apply", "fix.diff"], cwd=project, check=True)
    assert "scaled_dot_product_attention" in (project / "src/vit.py").read_text("utf-8")


def test_fixes_are_applied_once(project):
    first = torchtraceap("fix", TRACE, "--source", project)
    assert first.exit_code == 0, first.stderr
    assert "fixed src/vit.py:" in first.stderr
    assert first.stderr.endswith("\nrecord again to see what it gained\n")
    for path in (project / "src").glob("*.py"):
        compile(path.read_text("utf-8"), path.name, "exec")
    after = contents(project)
    assert after["src/vit.py"] != (LEAVES / "src/vit.py").read_bytes()
    again = torchtraceap("fix", TRACE, "--source", project, "--select", "unfused-attention")
    assert again.exit_code == 0
    assert again.stderr.endswith("\nno safe fix\n") and "fixed src" not in again.stderr
    assert contents(project) == after


def test_a_diff_does_not_ask_to_record(project):
    result = torchtraceap("fix", TRACE, "--source", project, "--select", "unfused-attention", "--diff")
    assert "would fix src/vit.py:" in result.stderr and "record again" not in result.stderr


def test_only_an_unsafe_fix_is_no_safe_fix(project):
    result = torchtraceap("fix", TRACE, "--source", project, "--select", "permute-contiguous-churn")
    assert result.stderr == "1 more with --unsafe\nno safe fix\n"


@pytest.mark.parametrize(("options", "said"), [((), "no safe fix"), (("--unsafe",), "no fix")])
def test_what_is_to_be_fixed_by_hand_is_not_nothing(tmp_path, options, said):
    result = torchtraceap("fix", TRACE, "--source", tmp_path, "--select", "unfused-attention", *options)
    by_hand = "1 to be fixed by hand; `torchtraceap analyze` says how"
    assert result.stderr == f"{by_hand}\n{said}\n"


def test_without_a_finding_there_is_nothing_to_fix(project):
    result = torchtraceap("fix", TRACE, "--source", project, "--select", "tf32-off")
    assert (result.exit_code, result.stderr) == (0, "nothing to fix\n")


def test_of_a_trace_that_cannot_be_read_only_the_error_is_told(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    result = torchtraceap("fix", tmp_path / "bad.json", "--source", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and "fix" not in result.stderr.replace(str(tmp_path), "")


def load(path):
    """A source file as a module of its own."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_fixed_example_computes_the_same(project):
    torch = pytest.importorskip("torch")

    def run(folder):
        torch.manual_seed(0)
        nets = load(folder / "vit.py").LeafViT(8).eval(), load(folder / "cnn.py").LeafCNN(8).eval()
        images = torch.rand(2, 3, 96, 96)
        with torch.no_grad():
            return [net(images) for net in nets]

    assert torchtraceap("fix", TRACE, "--source", project).exit_code == 0
    assert (project / "src/vit.py").read_text("utf-8") != (LEAVES / "src/vit.py").read_text("utf-8")
    for before, after in zip(run(LEAVES / "src"), run(project / "src"), strict=True):
        torch.testing.assert_close(after, before)


def test_line_ends_are_kept(project):
    vit = project / "src/vit.py"
    vit.write_bytes(vit.read_bytes().replace(b"\n", b"\r\n"))
    result = torchtraceap("fix", TRACE, "--source", project, "--select", "unfused-attention")
    assert "fixed src/vit.py:" in result.stderr, result.stderr
    assert b"\n" not in vit.read_bytes().replace(b"\r\n", b"")


def test_encoding_and_mode_are_kept(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(CODING.encode("latin-1"))
    path.chmod(0o750)
    write_source(open_workspace(tmp_path), "a.py", CODING, CODING + "x = 'ü'\r\n")
    assert path.read_bytes() == (CODING + "x = 'ü'\r\n").encode("latin-1")
    assert path.stat().st_mode & 0o777 == 0o750
    assert [each.name for each in tmp_path.iterdir()] == ["a.py"]


def test_a_byte_order_mark_is_kept(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes("\ufeffx = 1\n".encode())
    write_source(open_workspace(tmp_path), "a.py", "x = 1\n", "x = 2\n")
    assert path.read_bytes() == "\ufeffx = 2\n".encode()


def test_text_that_its_encoding_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(CODING.encode("latin-1"))
    with pytest.raises(ValueError, match="codec can't encode"):
        write_source(open_workspace(tmp_path), "a.py", CODING, CODING + "x = '→'\r\n")
    assert path.read_bytes() == CODING.encode("latin-1")


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path):
    (tmp_path / "a.py").write_text("x = 2\n")
    with pytest.raises(ValueError, match="changed meanwhile"):
        write_source(open_workspace(tmp_path), "a.py", "x = 1\n", "x = 3\n")
    assert (tmp_path / "a.py").read_text() == "x = 2\n"


def test_a_read_only_file_is_left_alone(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    path.chmod(0o444)
    with pytest.raises(ValueError, match="read-only"):
        write_source(open_workspace(tmp_path), "a.py", "x = 1\n", "x = 2\n")
    assert path.read_text() == "x = 1\n"


@pytest.mark.parametrize("path", ["../outside.py", "link.py"])
def test_nothing_outside_the_source_folder_is_written(tmp_path, path):
    inside = tmp_path / "inside"
    inside.mkdir()
    outside = tmp_path / "outside.py"
    outside.write_text("x = 1\n")
    (inside / "link.py").symlink_to(outside)
    with pytest.raises(ValueError, match="lies outside"):
        write_source(open_workspace(inside), path, "x = 1\n", "x = 2\n")
    assert outside.read_text() == "x = 1\n"


def test_a_diff_says_where_the_last_line_has_no_end():
    diff = unified_diff("a.py", "x = 1\ny = 2", "x = 1\ny = 3")
    assert diff[-2:] == ["-y = 2\n\\ No newline at end of file\n", "+y = 3\n\\ No newline at end of file\n"]
