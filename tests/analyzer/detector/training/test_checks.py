"""Corpora whose arrays do not go together are refused before anything is learned from them."""

from dataclasses import replace

import numpy as np
import pytest

from torchtraceap.analyzer.detector.training.dataset import Dataset

from .corpora import made_dataset

GOOD = made_dataset(traces=8)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"label": GOOD.label[:-1]}, "label has shape"),
        ({"features": GOOD.features[:, :-1]}, "features has shape"),
        ({"figures": GOOD.figures[:, :, :-1]}, "figures has shape"),
        ({"cost": GOOD.label}, "cost is float16 of shape"),
        ({"family": np.arange(8)}, "family is int64"),
        ({"label": np.full_like(GOOD.label, np.nan)}, "label has values"),
        ({"label": GOOD.label + np.float16(2)}, "label has values"),
        ({"token": np.full_like(GOOD.token, 60000)}, "token has values"),
        ({"trace": GOOD.trace + 1}, "trace has values"),
        ({"trace": GOOD.trace - 1}, "trace has values"),
        ({"figures": np.full_like(GOOD.figures, np.inf)}, "no numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path, changed, said):
    replace(GOOD, **changed).save(tmp_path / "part.npz")
    with pytest.raises(ValueError, match=f"part.npz cannot be used: .*{said}"):
        Dataset.load(tmp_path / "part.npz")


def test_a_corpus_without_windows_is_refused(tmp_path):
    GOOD.take(np.arange(0)).save(tmp_path / "part.npz")
    with pytest.raises(ValueError, match="there are no windows"):
        Dataset.load(tmp_path / "part.npz")


def test_an_archive_of_something_else_is_refused(tmp_path):
    np.savez(tmp_path / "part.npz", weights=np.zeros(3))
    with pytest.raises(ValueError, match=r"part.npz cannot be used: \w+ is not a file"):
        Dataset.load(tmp_path / "part.npz")


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "part.npz").write_text("nothing of use")
    with pytest.raises(ValueError, match="damaged"):
        Dataset.load(tmp_path / "part.npz")
