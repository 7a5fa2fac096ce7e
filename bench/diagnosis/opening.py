"""Opens the backend that the exam asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torchtraceap.analyzer.diagnosis.backends.base import Backend
from torchtraceap.analyzer.diagnosis.backends.settings import BackendSettings
from torchtraceap.analyzer.diagnosis.backends.small import default_cache, nf4_folder

SMALL, UNTUNED, ENDPOINT = "small", "small-untuned", "endpoint"


def settings_for(name: str, endpoint_url: str, key_variable: str) -> BackendSettings:
    """What to run by its name, or by the path of a model. Raises BackendError where the small model is not there."""
    if name == SMALL:
        return BackendSettings(backend="small")
    if name == UNTUNED:
        # As any local model is run: with no adapter of ours.
        return BackendSettings(backend="local", model=str(nf4_folder(default_cache())))
    if name == ENDPOINT:
        return BackendSettings(backend="endpoint", endpoint_url=endpoint_url, key_variable=key_variable)
    return BackendSettings(backend="local", model=name)


@contextmanager
def opened(settings: BackendSettings) -> Iterator[Backend]:
    """The backend, loaded, until its memory is given back. Raises BackendError if it cannot be run."""
    # Not before it is asked for: the first stage alone needs no library of language models.
    from torchtraceap.analyzer.diagnosis.backends.choose import backend_for

    backend = backend_for(settings)
    try:
        yield backend
    finally:
        backend.close()
