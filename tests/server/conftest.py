from __future__ import annotations

from pathlib import Path

import pytest
import pytest_lsp
from pytest_lsp import ClientServerConfig

from .clients import FABRICATED, Client, make_client


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest_lsp.fixture(config=ClientServerConfig(server_command=FABRICATED, client_factory=make_client))
async def client(lsp_client: Client):
    yield lsp_client
    if lsp_client.capabilities is None:
        lsp_client.exit(None)
    else:
        await lsp_client.shutdown_session()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root
