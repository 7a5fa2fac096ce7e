"""Code lenses: the time per step of functions and modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from ...analyzer.figures import format_ms, format_pct
from ...analyzer.findings import Hotspot

if TYPE_CHECKING:
    from ..app import Server


def register(server: Server) -> None:
    """Show times above definitions."""

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions(resolve_provider=False))
    def code_lens(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        found = server.engine.locate(params.text_document.uri)
        if found is None or not found[0].settings.code_lens or not found[0].settings.enable:
            return []
        folder, path, above = found
        notebook = server.engine.notebook(folder, path)
        publisher = server.engine.publisher(folder)
        lenses: list[lsp.CodeLens] = []
        for mark in folder.state.marks_in(path):
            start = publisher.position(path, mark.line, 1)
            if notebook is not None:
                cell = notebook.cell_at(mark.line)
                if cell is None or cell.above != above:
                    continue
                start = lsp.Position(start.line - above, start.character)
            # An empty command name is how a lens says that it does nothing when clicked.
            command = lsp.Command(title_of(mark.hotspot), "")
            lenses.append(lsp.CodeLens(lsp.Range(start, start), command))
        return lenses


def title_of(spot: Hotspot) -> str:
    """The time per step in words."""
    return f"{format_ms(spot.us_per_step)} ms per step ({format_pct(spot.pct_of_step)})"
