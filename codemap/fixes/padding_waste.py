"""Where sequences are padded: the statement to change for batches of like lengths. Advice only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...analyzer.findings import Finding, Location
from ..workspace import Workspace
from .base import Case, Confirmation, DeviceFacts, Fixer
from .outline import Outline, last_name, outline
from .scene import scene

_SLUG = "padding-waste"
_PADDERS = ("pad_sequence", "nested_tensor_from_tensor_list", "pad_packed_sequence", "to_padded_tensor")
_PADS_TO_LENGTH = ("max_length", "longest")


def _confirm(case: Case) -> Confirmation | None:
    return next(_paddings(case.workspace, case.location), None) if scene(case) is not None else None


def _search(finding: Finding, workspace: Workspace, device: DeviceFacts) -> Sequence[Confirmation]:
    return list(_paddings(workspace))


def _paddings(workspace: Workspace, like: Location | None = None) -> Iterator[Confirmation]:
    """The first statement of each file that pads sequences: it stands far from the attention that it slows."""
    for path in workspace.paths():
        text = workspace.text(path)
        if text is None or "pad" not in text:
            continue
        file = outline(workspace.file(path))
        call = _padding(file) if file is not None else None
        if file is not None and call is not None:
            how = "to a fixed length" if _is_fixed(call) else "to the longest of the batch"
            place = file.location(file.statement(call), like)
            yield Confirmation(place, (), (), f"sequences are padded {how} here: group them by length")


def _padding(file: Outline) -> ast.Call | None:
    """The first call that pads sequences of different lengths."""
    named = [call for name in _PADDERS for call in file.calls(name)]
    told = [node for node in file.nodes if isinstance(node, ast.Call) and _pads_to_length(node)]
    filled = [call for call in file.calls("pad") if _is_in_collation(file, call)]
    return min([*named, *told, *filled], key=lambda call: (call.lineno, call.col_offset), default=None)


def _pads_to_length(call: ast.Call) -> bool:
    return any(
        keyword.arg == "padding" and isinstance(keyword.value, ast.Constant) and keyword.value.value in _PADS_TO_LENGTH
        for keyword in call.keywords
    )


def _is_fixed(call: ast.Call) -> bool:
    values = [keyword.value for keyword in call.keywords if keyword.arg == "padding"]
    return any(isinstance(value, ast.Constant) and value.value == "max_length" for value in values)


def _is_in_collation(file: Outline, call: ast.Call) -> bool:
    """Whether a `pad` makes a batch of samples: other padding is part of the model."""
    function = file.function(call)
    name = "" if isinstance(function, ast.Module) else function.name
    return "collate" in name or "batch" in name or last_name(call.func) == "pad_batch"


FIXER = Fixer(_SLUG, _confirm, _search)
