"""Settings and workspace folders: read at start, and again whenever the client says that they changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from ..folders import initial_uris
from ..log import set_level
from ..settings import SECTION, Settings, parse_settings

if TYPE_CHECKING:
    from ..app import Server

ANSWER_WITHIN_S = 3.0
"""A client that does not answer for so long is not waited for."""

log = logging.getLogger(__name__)


def register(server: Server) -> None:
    """Follow the client's settings and folders."""

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.protocol.use_source_documents(params)
        server.begin()
        server.base_settings = _parse(params.initialization_options, Settings())
        set_level(server.base_settings.log_level)
        server.root_uris = initial_uris(
            [folder.uri for folder in params.workspace_folders or []], params.root_uri, params.root_path
        )

    @server.feature(lsp.INITIALIZED)
    async def initialized(params: lsp.InitializedParams) -> None:
        server.start_logging()
        await _register_changes(server)
        if not server.root_uris:
            log.info("no folder is open: there is nothing to watch")
        await open_folders(server, server.root_uris)
        await server.engine.analysis.start()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: lsp.DidChangeConfigurationParams) -> None:
        folders = list(server.engine.folders)
        pulled = await pull(server, [folder.uri for folder in folders])
        for folder, settings in zip(folders, pulled, strict=True):
            if settings is None:
                settings = _parse(params.settings, server.base_settings)
            set_level(settings.log_level)
            server.engine.configure(folder, settings)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def did_change_folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            server.engine.close_folder(folder.uri)
        await open_folders(server, [folder.uri for folder in params.event.added])


async def open_folders(server: Server, uris: Sequence[str]) -> None:
    """Open folders with their own settings, and take in the documents of them that are open already."""
    for uri, settings in zip(uris, await pull(server, uris), strict=True):
        settings = settings or server.base_settings
        set_level(settings.log_level)
        if server.engine.open_folder(uri, settings) is None:
            log.warning("%s is no folder that can be watched", uri)
    for document in server.documents():
        if (found := server.engine.folders.locate(document.uri)) is not None:
            found[0].uris[found[1]] = document.uri


async def pull(server: Server, uris: Sequence[str]) -> list[Settings | None]:
    """Each folder's settings from the client; None where the client does not tell."""
    capabilities = server.client_capabilities.workspace
    if not uris or capabilities is None or not capabilities.configuration:
        return [None] * len(uris)
    items = [lsp.ConfigurationItem(scope_uri=uri, section=SECTION) for uri in uris]
    try:
        answer = await asyncio.wait_for(
            server.workspace_configuration_async(lsp.ConfigurationParams(items)), ANSWER_WITHIN_S
        )
    except asyncio.TimeoutError:
        log.warning("the client has not told its settings within %g s; the present ones stay", ANSWER_WITHIN_S)
        return [None] * len(uris)
    except JsonRpcException as error:
        log.warning("the client does not tell its settings: %s", error)
        return [None] * len(uris)
    answers = [*(answer or []), *([None] * len(uris))][: len(uris)]
    return [None if raw is None else _parse(raw, server.base_settings) for raw in answers]


async def _register_changes(server: Server) -> None:
    """VS Code tells of changed settings only those who ask for it."""
    capabilities = server.client_capabilities.workspace
    changes = capabilities.did_change_configuration if capabilities else None
    if changes is None or not changes.dynamic_registration:
        return
    method = lsp.WORKSPACE_DID_CHANGE_CONFIGURATION
    registration = lsp.Registration(
        f"{SECTION}-settings", method, lsp.DidChangeConfigurationRegistrationOptions(SECTION)
    )
    try:
        await asyncio.wait_for(
            server.client_register_capability_async(lsp.RegistrationParams([registration])), ANSWER_WITHIN_S
        )
    except (asyncio.TimeoutError, JsonRpcException) as error:
        log.warning("the client does not register for changed settings: %s", error)


def _parse(raw: Any, base: Settings) -> Settings:
    parsed = parse_settings(raw, base)
    for problem in parsed.problems:
        log.warning("%s", problem)
    return parsed.settings
