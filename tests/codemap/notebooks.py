"""Notebooks for the tests."""

from __future__ import annotations

import json
from collections.abc import Collection


def notebook_json(*sources: str, markdown: Collection[int] = (), counts: Collection[int | None] = ()) -> bytes:
    """A notebook as JupyterLab stores it: these cells, those at the positions `markdown` not being code."""
    cells = []
    executed = list(counts) or [None] * len(sources)
    for position, source in enumerate(sources):
        cell = {"cell_type": "code", "execution_count": executed[position], "id": f"c{position}", "metadata": {}}
        cell |= {"outputs": [], "source": source.splitlines(keepends=True)}
        if position in markdown:
            cell = {"cell_type": "markdown", "id": f"c{position}", "metadata": {}, "source": cell["source"]}
        cells.append(cell)
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    document = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()
