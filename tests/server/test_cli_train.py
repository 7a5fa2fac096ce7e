"""`torchtraceap train detector`."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from torchtraceap.analyzer.detector.card import CARD, FOREST, NETWORK, NOVELTY

CORPORA = Path(__file__).parents[1] / "analyzer" / "detector" / "training" / "corpora.py"


def run(*arguments, code="from torchtraceap.server.cli import main; main()"):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=200
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("corpora", CORPORA)
    corpora = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(corpora)
    folder = tmp_path_factory.mktemp("corpus")
    for seed in range(2):
        corpora.made_dataset(traces=60, seed=seed).save(folder / f"part{seed}.npz")
    return folder


def test_trains_from_a_folder_of_parts_and_prints_figures(corpus, tmp_path):
    page = tmp_path / "page.md"
    result = run("train", "detector", "--corpus", corpus, "--out", tmp_path / "model", "--epochs", 1, "--page", page)
    assert result.returncode == 0, result.stderr
    assert {path.name for path in (tmp_path / "model").iterdir()} == {CARD, FOREST, NETWORK, NOVELTY}
    assert "unseen families on unseen devices" in result.stdout
    assert "auc_bad" in result.stdout
    assert "fold 1 of 3" in result.stderr
    assert "warning: the corpus is of made, this version makes" in result.stderr
    assert page.read_text("utf-8").startswith("# The detector's model card")


def test_says_how_to_get_what_is_missing(corpus, tmp_path):
    code = "import sys; sys.modules['torch'] = None; from torchtraceap.server.cli import main; main()"
    result = run("train", "detector", "--corpus", corpus, "--out", tmp_path, code=code)
    assert result.returncode == 2
    assert "pip install 'torchtraceap[train]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_folder_without_parts_is_refused(tmp_path):
    result = run("train", "detector", "--corpus", tmp_path, "--out", tmp_path / "model")
    assert result.returncode == 2
    assert "no .npz" in result.stderr


def test_a_damaged_part_is_refused(corpus, tmp_path):
    whole = (corpus / "part0.npz").read_bytes()
    (tmp_path / "part.npz").write_bytes(whole[: len(whole) // 2])
    result = run("train", "detector", "--corpus", tmp_path, "--out", tmp_path / "model")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "part.npz cannot be used: damaged" in result.stderr
