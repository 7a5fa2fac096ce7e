"""`torchtraceap train diagnosis`."""

import subprocess
import sys

import pytest

pytest.importorskip("peft")
pytest.importorskip("bitsandbytes")

from tests.analyzer.diagnosis.training.tiny import made_pairs, tiny_model, tiny_tokenizer
from torchtraceap.analyzer.diagnosis.training.pairs import write_pairs


def run(*arguments, code="from torchtraceap.server.cli import main; main()"):
    command = [sys.executable, "-c", code, "train", "diagnosis", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    write_pairs(path, made_pairs(8))
    return path


def test_teaches_a_model_in_a_folder_and_goes_on_only_from_a_checkpoint(pairs, tmp_path):
    base, out = tmp_path / "base", tmp_path / "adapter"
    tiny_model().save_pretrained(base)
    tiny_tokenizer().save_pretrained(base)
    arguments = ("--pairs", pairs, "--base", base, "--out", out, "--rank", 2, "--layers", 1, "--threads", 1)
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    assert "6 pairs in" in result.stdout
    names = {path.name for path in out.iterdir()}
    assert names == {"adapter_model.safetensors", "adapter_config.json", "card.json", "README.md", "loss.csv"}
    assert str(tmp_path) not in (out / "card.json").read_text() + (out / "adapter_config.json").read_text()
    again = run(*arguments, "--resume")
    assert again.returncode == 2
    assert "no checkpoint.safetensors in" in again.stderr


def test_a_damaged_file_of_pairs_is_refused_by_its_line(pairs, tmp_path):
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(pairs.read_bytes()[:-100])
    result = run("--pairs", damaged, "--out", tmp_path / "adapter")
    assert result.returncode == 2
    assert "damaged.jsonl: line 8: " in result.stderr
    assert "Traceback" not in result.stderr


def test_a_base_that_is_not_there_is_refused(pairs, tmp_path):
    result = run("--pairs", pairs, "--base", "nobody/no-such-model", "--out", tmp_path / "adapter")
    assert result.returncode == 2
    assert "nobody/no-such-model cannot be loaded for training" in result.stderr
    assert "Traceback" not in result.stderr


def test_says_how_to_get_what_is_missing(pairs, tmp_path):
    code = "import sys; sys.modules['peft'] = None; from torchtraceap.server.cli import main; main()"
    result = run("--pairs", pairs, "--out", tmp_path, code=code)
    assert result.returncode == 2
    assert "pip install 'torchtraceap[llm]'" in result.stderr
    assert "Traceback" not in result.stderr
