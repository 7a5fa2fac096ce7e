"""A wrapper that sends the buffers round before each forward pass: let it not."""

from __future__ import annotations

import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .ddp import WORDS, confirm_option, literals, option, set_option
from .resolve import Resolver, Value
from .scene import searcher
from .versions import is_older

_SLUG = "buffers-broadcast"
_OLD, _NEW = "broadcast_buffers", "forward_sync_buffers"
_NEW_SINCE = (2, 13)


def _confirm(case: Case) -> Confirmation | None:
    version = case.device.torch_version
    name = _NEW if version and not is_older(version, _NEW_SINCE) else _OLD

    def fix(resolver: Resolver, wrapper: Value) -> Fix | str:
        written = next((one for one in (_OLD, _NEW) if option(resolver, wrapper, one).value is not None), name)
        title = f"Do not broadcast buffers in every step ({written}=False)"
        return set_option(resolver, wrapper, written, "False", (_SLUG, title, Safety.UNSAFE))

    return confirm_option(case, _sends_buffers, fix)


def _sends_buffers(resolver: Resolver, wrapper: Value) -> bool:
    """Both options are on unless one is False."""
    return not any(
        literals(resolver, given) == [False] for given in (option(resolver, wrapper, one) for one in (_OLD, _NEW))
    )


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, WORDS),
    cure=Cure(re.compile(r"\b(broadcast|forward_sync)_buffers\s*=\s*False"), is_elsewhere=True),
)
