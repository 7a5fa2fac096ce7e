"""A wrapper that copies gradients out of its buckets: let them be views of the buckets."""

from __future__ import annotations

import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .ddp import WORDS, confirm_option, literals, option, set_option
from .resolve import Resolver, Value
from .scene import searcher
from .versions import is_older

_SLUG = "bucket-copies"
_NAME = "gradient_as_bucket_view"
_SINCE = (1, 7)


def _confirm(case: Case) -> Confirmation | None:
    def fix(resolver: Resolver, wrapper: Value) -> Fix | str:
        if is_older(case.device.torch_version, _SINCE):
            return f"{_NAME} needs PyTorch {_SINCE[0]}.{_SINCE[1]}"
        if any("grad.detach_(" in (case.workspace.text(path) or "") for path in case.workspace.paths()):
            return "gradients are detached in place, which views cannot be"
        title = f"Let gradients be views of the buckets ({_NAME}=True)"
        return set_option(resolver, wrapper, _NAME, "True", (_SLUG, title, Safety.SAFE))

    return confirm_option(case, _copies, fix)


def _copies(resolver: Resolver, wrapper: Value) -> bool:
    return not any(value is True for value in literals(resolver, option(resolver, wrapper, _NAME)))


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, WORDS),
    cure=Cure(re.compile(r"\bgradient_as_bucket_view\s*=\s*True"), is_elsewhere=True),
)
