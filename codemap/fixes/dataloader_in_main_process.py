"""A `DataLoader` without workers: give it some."""

from __future__ import annotations

import ast
import re

from ...analyzer.findings import Fix, Related, Safety
from .base import Case, Confirmation, Cure, DeviceFacts, Fixer
from .calls import edit_call
from .edits import Patch
from .loaders import dataset_class, loader_argument, loaders_at
from .resolve import Resolver, Value
from .scene import scene, searcher
from .settings import constants

_SLUG = "dataloader-in-main-process"
_GPU_WORKERS = "4"
_CPU_WORKERS = "2"
"""On a CPU the workers take cores from the model."""


def _confirm(case: Case) -> Confirmation | None:
    view = scene(case)
    if view is None:
        return None
    faulty = [loader for loader in loaders_at(view) if _has_no_workers(view.resolver, loader)]
    if not faulty:
        return None
    loader = faulty[0]
    others = tuple(
        Related("another loader without workers", other.outline.location(other.node, case.location))
        for other in faulty[1:]
    )
    place = loader.outline.location(loader.node, case.location)
    fix, message = _fix(view.resolver, loader, case.device)
    return Confirmation(place, (fix,) if fix else (), others, message)


def _has_no_workers(resolver: Resolver, loader: Value) -> bool:
    given = loader_argument(resolver, loader, "num_workers")
    if given.value is None:
        return True  # not passed, or hidden in a `**config` that only the run knows
    literals = [one.node.value for one in constants(resolver, given.value) if isinstance(one.node, ast.Constant)]
    return not literals or any(value in (0, None) for value in literals)


def _fix(resolver: Resolver, loader: Value, device: DeviceFacts) -> tuple[Fix | None, str]:
    """The fix, or why there is none."""
    given = loader_argument(resolver, loader, "num_workers")
    if given.is_unknown:
        return None, "num_workers is passed by keyword unpacking that the source does not spell out"
    safety = Safety.SAFE
    if (dataset := dataset_class(resolver, loader)) is not None:
        text = dataset.outline.segment(dataset.node)
        if any(name.endswith("IterableDataset") for name in resolver.base_names(dataset)):
            if "get_worker_info" not in text:
                return None, "an IterableDataset that does not split itself by get_worker_info would repeat its data"
        elif ".cuda(" in text or ".to(" in text:
            safety = Safety.UNSAFE  # tensors on a device cannot be used in forked workers
    workers = _CPU_WORKERS if device.is_cpu else _GPU_WORKERS
    patch = Patch(loader.outline)
    added = {}
    edits = ()
    if given.value is None or isinstance(given.value.node, ast.Constant):
        added["num_workers"] = workers
    else:
        found = constants(resolver, given.value)
        zeros = [one for one in found if getattr(one.node, "value", 1) in (0, None)]
        if not zeros:
            return None, "num_workers comes from a setting that is not in the source"
        if len(zeros) > 1:
            return None, "num_workers is set to 0 in several places"
        if len(found) > 1:
            return None, "num_workers is 0 only for some of those who pass it"
        setting = patch if zeros[0].outline is loader.outline else Patch(zeros[0].outline)
        setting.replace(zeros[0].node, workers)
        edits = setting.edits() if setting is not patch else ()
    for name in ("pin_memory", "persistent_workers"):
        held = loader_argument(resolver, loader, name)
        # persistent_workers=True is an error without workers: only where this edit itself guarantees some.
        wanted = not device.is_cpu if name == "pin_memory" else "num_workers" in added
        if wanted and held.value is None and not held.is_unknown:
            added[name] = "True"
    _set_keywords(patch, loader, given.value, added)
    return Fix(_SLUG, _title(workers, added), safety, (*patch.edits(), *edits)), ""


def _set_keywords(patch: Patch, loader: Value, workers: Value | None, added: dict[str, str]) -> None:
    """Write the arguments into the constructor; a literal that stands elsewhere (`**kwargs`, a position) is changed
    where it stands."""
    assert isinstance(loader.node, ast.Call)
    added = dict(added)
    is_keyword = workers is not None and any(keyword.value is workers.node for keyword in loader.node.keywords)
    if workers is not None and "num_workers" in added and not is_keyword:
        if workers.outline is patch.outline and not _within(workers.node, loader.node):
            patch.replace(workers.node, added.pop("num_workers"))
        elif workers.node in loader.node.args:
            position = loader.node.args.index(workers.node)
            start, end = patch.outline.span(workers.node)
            if len(added) == 1:
                patch.replace_span(start, end, added["num_workers"])
                return
            text = edit_call(patch.outline.segment(loader.node), added, drop_positions=range(position, position + 1))
            patch.replace(loader.node, text)
            return
    if added:
        column = patch.outline.position(patch.outline.span(loader.node)[0])[1] - 1
        patch.replace(loader.node, edit_call(patch.outline.segment(loader.node), added, column=column))


def _within(node: ast.AST, call: ast.AST) -> bool:
    return any(child is node for child in ast.walk(call))


def _title(workers: str, added: dict[str, str]) -> str:
    extras = [name for name in ("pin_memory", "persistent_workers") if name in added]
    return f"Load in {workers} worker processes" + (f" ({', '.join(extras)})" if extras else "")


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, ("DataLoader",)),
    cure=Cure(re.compile(r"\bnum_workers\s*=\s*[^\s0]"), is_elsewhere=True),
)
