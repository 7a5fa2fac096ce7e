"""A wrapper that searches for unused parameters where there are none: let it not."""

from __future__ import annotations

import re

from ...analyzer.findings import Fix, Safety
from .base import Case, Confirmation, Cure, Fixer
from .ddp import WORDS, confirm_option, drop_option, literals, option
from .resolve import Resolver, Value
from .scene import searcher

_SLUG = "find-unused-parameters"
_NAME = "find_unused_parameters"


def _confirm(case: Case) -> Confirmation | None:
    return confirm_option(case, _searches, _fix)


def _searches(resolver: Resolver, wrapper: Value) -> bool:
    given = option(resolver, wrapper, _NAME)
    return given.is_unknown or any(value is True for value in literals(resolver, given))


def _fix(resolver: Resolver, wrapper: Value) -> Fix | str:
    title = "Do not search for unused parameters (all of them had gradients here)"
    return drop_option(resolver, wrapper, _NAME, (_SLUG, title, Safety.UNSAFE))


FIXER = Fixer(
    _SLUG,
    _confirm,
    searcher(_confirm, (_NAME, *WORDS)),
    required=True,
    cure=Cure(re.compile(r"DistributedDataParallel|DDP"), is_elsewhere=True),
)
