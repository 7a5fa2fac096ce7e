"""The range round a block, as editors ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types as lsp

from torchtraceap.server.features.tag_action import KIND, lines_of

from . import clients
from .clients import EDITORS, Client, actions, change_whole, edited, open_file, until

SOURCE = "import torch\n\n\ndef forward(x):\n    s = 'ß😀'  # a note\n    y = net(s, x)\n    return y\n"


async def begin(client: Client, project: Path, editor: str = "neovim") -> None:
    await clients.begin(client, project, editor)
    await until(lambda: any("watching" in m.message for m in client.log_messages), "the folder to be opened")


async def tag(client: Client, uri: str, first: int, last: int | None = None) -> list[lsp.CodeAction]:
    return [action for action in await actions(client, uri, first, last) if action.kind == KIND]


async def edits_of(client: Client, action: lsp.CodeAction) -> list[lsp.TextEdit]:
    resolved = action if action.edit else await client.code_action_resolve_async(action)
    assert resolved.edit and resolved.edit.document_changes
    (one,) = resolved.edit.document_changes
    assert isinstance(one, lsp.TextDocumentEdit)
    return [edit for edit in one.edits if isinstance(edit, lsp.TextEdit)]


@pytest.mark.parametrize("editor", EDITORS)
async def test_a_selection_gets_a_range(client: Client, project: Path, editor: str) -> None:
    file = project / "model.py"
    file.write_text(SOURCE)
    await begin(client, project, editor)
    uri = open_file(client, file)
    (action,) = await tag(client, uri, 4, 6)
    text = edited(SOURCE, await edits_of(client, action))
    body = SOURCE.splitlines()[4:6]
    assert text.splitlines()[4:7] == [
        '    with torch.profiler.record_function("forward.net"):',
        *("    " + b for b in body),
    ]
    assert text.splitlines()[7:] == SOURCE.splitlines()[6:]


async def test_the_cursor_is_enough_and_a_cut_selection_is_not(client: Client, project: Path) -> None:
    file = project / "model.py"
    file.write_text(SOURCE)
    await begin(client, project)
    uri = open_file(client, file)
    assert len(await tag(client, uri, 5)) == 1
    assert await tag(client, uri, 3, 5) == []
    assert await tag(client, uri, 0) == []
    assert await tag(client, uri, 2) == []
    assert [a for a in await actions(client, uri, 5, only=["refactor"]) if a.kind == KIND]
    assert not [a for a in await actions(client, uri, 5, only=["quickfix"]) if a.kind == KIND]


async def test_the_edit_is_made_in_the_text_as_it_is_then(client: Client, project: Path) -> None:
    file = project / "model.py"
    file.write_text(SOURCE)
    await begin(client, project)
    uri = open_file(client, file)
    (action,) = await tag(client, uri, 5)
    change_whole(client, uri, 2, SOURCE.replace("import torch\n", "import os\n"))
    text = edited(SOURCE.replace("import torch\n", "import os\n"), await edits_of(client, action))
    assert text.startswith("import os\nimport torch\n")
    change_whole(client, uri, 3, "import torch\ndef f(:\n")
    assert (await client.code_action_resolve_async(action)).edit is None
    assert not client.messages


async def test_files_that_are_not_about_torch_are_left_alone(client: Client, project: Path) -> None:
    file = project / "tool.py"
    file.write_text("def f(x):\n    return g(x)\n")
    await begin(client, project)
    assert await tag(client, open_file(client, file), 1) == []


def test_a_selection_that_ends_before_a_line_leaves_it_out() -> None:
    def span(a: int, b: int, c: int, d: int) -> lsp.Range:
        return lsp.Range(lsp.Position(a, b), lsp.Position(c, d))

    assert lines_of(span(2, 0, 4, 0)) == (3, 4)
    assert lines_of(span(2, 3, 4, 1)) == (3, 5)
    assert lines_of(span(2, 0, 2, 0)) == (3, 3)
