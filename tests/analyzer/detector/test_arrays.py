"""Archives of arrays that are damaged, hostile, or of something else."""

import zipfile

import numpy as np
import pytest

from torchtraceap.analyzer.detector.arrays import load_arrays


def save_header(path, text):
    """An archive whose one array has this header and no values."""
    header = text.encode().ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


def test_arrays_are_loaded_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", one=np.arange(3), two=np.zeros(1))
    assert load_arrays(tmp_path / "a.npz", ("one",), 1000)["one"].tolist() == [0, 1, 2]
    with pytest.raises(KeyError, match="three"):
        load_arrays(tmp_path / "a.npz", ("three",), 1000)
    with pytest.raises(ValueError, match="more than 100"):
        load_arrays(tmp_path / "a.npz", ("one",), 100)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', (",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    ],
)
def test_headers_that_lie_are_refused(tmp_path, header):
    save_header(tmp_path / "a.npz", header)
    with pytest.raises(ValueError):
        load_arrays(tmp_path / "a.npz", ("one",), 1000)


def test_encrypted_archives_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, one=np.arange(3))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x03\x04") + 6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="encrypted"):
        load_arrays(path, ("one",), 1000)
