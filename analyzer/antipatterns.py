"""The rules, reached through one class."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from .assess import price_all
from .detected import AUTO, DEFAULTS, Analysis, Detected, Options
from .findings import Finding
from .patterns.base import Pattern
from .patterns.registry import selected_patterns
from .timeline.family import Family, recognise
from .timeline.model import Timeline

MODEL_TYPES = (AUTO, *(family.value for family in Family))


class AntiPatternDetector:
    """Finds anti-patterns in timelines with the rules that hold for one family of models.

    `model_type` is a `Family` by its value, or "auto": then each timeline is asked for its family. Raises ValueError
    for any other.
    """

    def __init__(self, model_type: str = AUTO, options: Options = DEFAULTS) -> None:
        if model_type not in MODEL_TYPES:
            raise ValueError(f"no model type {model_type!r}; there are {', '.join(MODEL_TYPES)}")
        self._family = None if model_type == AUTO else Family(model_type)
        self._options = options
        chosen = selected_patterns(options.select, options.ignore)
        known = {pattern.slug: pattern for pattern in chosen if holds_for(pattern, self._family)}
        self.pattern_db: Mapping[str, Pattern] = MappingProxyType(known)
        """The rules by slug."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups of rules, such as "inefficient_conv" and "attention_bottleneck", in order of code."""
        return tuple(dict.fromkeys(pattern.group for pattern in self.pattern_db.values()))

    def check(self, timeline: Timeline, groups: Collection[str] = ()) -> tuple[Finding, ...]:
        """The findings, without places in the source, what to do first first. `groups` names those to look for
        (all if empty). Raises ValueError for a group that there is not."""
        return tuple(price_all(self.detect(timeline, groups), self._options))

    def detect(self, timeline: Timeline, groups: Collection[str] = ()) -> Analysis:
        """What the rules find, in order of code; nothing is priced yet. Raises ValueError as `check` does."""
        if unknown := set(groups) - set(self.groups):
            raise ValueError(f"no group {', '.join(sorted(unknown))}; there are {', '.join(self.groups)}")
        family = self._family or recognise(timeline)
        detected: list[Detected] = []
        failures: list[str] = []
        for pattern in self.pattern_db.values():
            if (groups and pattern.group not in groups) or not holds_for(pattern, family):
                continue
            try:
                detected += [Detected(pattern, candidate) for candidate in pattern.find(timeline)]
            except Exception as error:  # noqa: BLE001 - one rule's fault must not cost the findings of the others
                failures.append(f"the rule {pattern.slug} failed and found nothing: {type(error).__name__}: {error}")
        return Analysis(timeline, tuple(detected), tuple(failures), family)


def holds_for(pattern: Pattern, family: Family | None) -> bool:
    """A rule of some families is left out only where the model is known to be of another."""
    return family is None or not pattern.families or family in pattern.families
