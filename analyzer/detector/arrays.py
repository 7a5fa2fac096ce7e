"""Arrays of an `.npz` that may come from anywhere: nothing is unpickled, and no more is unpacked than is allowed."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np


def load_arrays(path: Path, names: Iterable[str], most_bytes: int) -> dict[str, np.ndarray]:
    """The arrays of these names. Raises OSError, KeyError (one is missing) or ValueError: no such archive, damaged,
    encrypted, pickled, or of more bytes than `most_bytes` once unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            size_bytes = sum(member.file_size for member in archive.infolist())
        if size_bytes > most_bytes:
            raise ValueError(f"{size_bytes:,} bytes of arrays are more than {most_bytes:,}")
        with np.load(path, allow_pickle=False) as stored:
            return {name: np.asarray(stored[name]) for name in names}
    except (OSError, KeyError, ValueError):
        raise
    except Exception as error:  # zipfile, its decompressors and numpy's headers have no base of their own
        raise ValueError(f"damaged: {error or type(error).__name__}") from error
