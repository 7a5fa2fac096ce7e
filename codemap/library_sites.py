"""Where the program has a library build a model: `torchvision.models.resnet50()`, `timm.create_model("vit_...")`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from ..analyzer.findings import Location
from .index import FileIndex
from .knowledge import Knowledge
from .recorded import RecordedFiles
from .statements import location_of, qualname_at, statement_at

_CREATES = r"(create_model\w*|from_pretrained|from_config|from_name|get_model|load\w*|build_model)"
_BUILDERS = (
    ("torchvision", re.compile(r"torchvision\.models\.(\w+\.)*\w+")),
    ("timm", re.compile(rf"timm\.({_CREATES}|models\.(\w+\.)*\w+)")),
    ("transformers", re.compile(r"transformers\.(\w+\.)*\w*(Model|For[A-Z]\w*|Backbone|LMHeadModel)(\.from_\w+)?")),
    ("segmentation_models_pytorch", re.compile(r"segmentation_models_pytorch\.(create_model|(\w+\.)*[A-Z]\w*)")),
    ("ultralytics", re.compile(r"ultralytics\.(\w+\.)*[A-Z]\w*")),
    ("open_clip", re.compile(rf"open_clip\.{_CREATES}")),
    ("clip", re.compile(r"clip\.load")),
    ("diffusers", re.compile(r"diffusers\.(\w+\.)*[A-Z]\w*(\.from_\w+)?")),
    ("monai", re.compile(r"monai\.networks\.nets\.(\w+\.)*\w+")),
    ("detectron2", re.compile(rf"detectron2\.modeling\.(\w+\.)*{_CREATES}")),
    ("efficientnet_pytorch", re.compile(rf"efficientnet_pytorch\.EfficientNet(\.{_CREATES})?")),
    ("", re.compile(r"torch\.hub\.load")),
)
"""The library whose frames such a model runs ("" if the call does not say), and the dotted name of the call."""
_NO_MODELS = re.compile(
    r"(Config|Processor|Tokenizer\w*|FeatureExtractor|Scheduler|Dataset|Transform)(\.\w+)?$|_Weights\b"
)
_MOST_SITES = 60


@dataclass(frozen=True, slots=True)
class Site:
    """A call that builds a library's model."""

    library: str
    """The library's top package; "" where the call does not say."""
    is_known: bool
    """Whether the call is one that builds models, not just an imported class."""
    names: tuple[str, ...]
    """What the model is asked for by: the callee's parts and its first text argument, in lower case."""
    target: str
    """The bare name that the model is assigned to; "" if none."""
    location: Location


def find_sites(known: Knowledge, files: RecordedFiles) -> tuple[Site, ...]:
    """All such calls in the files of the recording, at most some dozens."""
    found: list[Site] = []
    own = {path.partition("/")[0].removesuffix(".py") for path in known.workspace.paths()}
    for path in files.sample():
        found += _sites(known.index(path), own)
        if len(found) > _MOST_SITES:
            break
    return tuple(found[:_MOST_SITES])


def _sites(index: FileIndex, own: set[str]) -> Iterator[Site]:
    for node in index.nodes:
        if not isinstance(node, ast.Call) or not (dotted := index.dotted(node.func)):
            continue
        library = _library_of(dotted, index, own)
        if library is None:
            continue
        statement = statement_at(index.file, node.lineno)
        if statement is None or isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        location = location_of(index.file, statement, qualname_at(index.file, node.lineno))
        text = next((a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)), "")
        asked = [*dotted.split(".")[1:], *([text] if text else [])]
        if "hub" in asked and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            asked.append(str(node.args[1].value))
        names = tuple(name.lower() for name in asked)
        yield Site(library[0], library[1], names, _target(statement), location)


def _library_of(dotted: str, index: FileIndex, own: set[str]) -> tuple[str, bool] | None:
    """The library that builds a model in a call of this name, and whether that is sure; None for any other call."""
    if _NO_MODELS.search(dotted):
        return None
    for library, pattern in _BUILDERS:
        if pattern.fullmatch(dotted):
            return library, True
    head, _, rest = dotted.partition(".")
    is_foreign = head not in own and head not in ("torch", "self", "cls") and head not in sys.stdlib_module_names
    is_class = rest.rpartition(".")[2][:1].isupper()
    if not (head and is_foreign and is_class):
        return None
    is_imported = any(origin.partition(".")[0] == head for origin in index.imports.values())
    return (head, False) if is_imported else None


def _target(statement: ast.stmt) -> str:
    """`model` of `model = ...`, `backbone` of `self.backbone = ...`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    target = targets[0]
    if isinstance(target, ast.Tuple):
        target = target.elts[0]
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
