"""The rules, and the detector beside them, reached through one class."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from .assess import price_all
from .detected import AUTO, DEFAULTS, Analysis, Detected, Options
from .detector.session import DetectorError
from .findings import Finding
from .patterns.base import Candidate, Pattern, Verdicts
from .patterns.registry import all_patterns, selected_patterns
from .timeline.family import Family, recognise
from .timeline.model import Timeline
from .trace.model import IntArray

if TYPE_CHECKING:
    from .detector.scorer import Look

MODEL_TYPES = (AUTO, *(family.value for family in Family))


class Looking(Protocol):
    """What looks at traces: a `Detector`, or the one that the package comes with (`Shipped`)."""

    def look(self, timeline: Timeline) -> Look:
        """What it says of a trace. Raises DetectorError if it cannot."""
        ...


class AntiPatternDetector:
    """Finds anti-patterns in timelines with the rules that hold for one family of models, and a detector, if given.

    `model_type` is a `Family` by its value, or "auto": then each timeline is asked for its family. Raises ValueError
    for any other.
    """

    def __init__(self, model_type: str = AUTO, options: Options = DEFAULTS, detector: Looking | None = None) -> None:
        if model_type not in MODEL_TYPES:
            raise ValueError(f"no model type {model_type!r}; there are {', '.join(MODEL_TYPES)}")
        self._family = None if model_type == AUTO else Family(model_type)
        self._options = options
        self._detector = detector
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
        chosen = [one for one in self.pattern_db.values() if not groups or one.group in groups]
        found = _Found()
        look = self._look(timeline, found)
        for pattern in _holding(chosen, family):
            found.take(pattern, pattern.find, timeline)
        comparing = [(one, one.compare) for one in _holding(chosen, family) if one.compare is not None]
        if look is not None and comparing:
            verdicts = _verdicts(timeline, look, found, _holding(_others(chosen), family))
            for pattern, compare in comparing:
                found.take(pattern, compare, timeline, verdicts)
        scores = look.scores if look is not None else None
        return Analysis(timeline, tuple(found.detected), tuple(found.failures), family, scores)

    def _look(self, timeline: Timeline, found: _Found) -> Look | None:
        """What the detector says, if there is one; why it says nothing goes to the failures."""
        if self._detector is None:
            return None
        try:
            return self._detector.look(timeline)
        except DetectorError as error:
            found.failures.append(f"the detector is left out: {error}")
        except Exception as error:  # noqa: BLE001 - its fault must not cost the rules' findings
            found.failures.append(f"the detector failed and is left out: {type(error).__name__}: {error}")
        return None


def holds_for(pattern: Pattern, family: Family | None) -> bool:
    """A rule of some families is left out only where the model is known to be of another."""
    return family is None or not pattern.families or family in pattern.families


@dataclass(slots=True)
class _Found:
    """What was found so far, and what failed."""

    detected: list[Detected] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def take(self, pattern: Pattern, find: Callable[..., Iterable[Candidate]], *asked: object) -> None:
        """Ask a pattern for its candidates."""
        try:
            self.detected += [Detected(pattern, candidate) for candidate in find(*asked)]
        except Exception as error:  # noqa: BLE001 - one rule's fault must not cost the findings of the others
            self.failures.append(f"the rule {pattern.slug} failed and found nothing: {type(error).__name__}: {error}")


def _holding(patterns: Collection[Pattern], family: Family | None) -> Iterator[Pattern]:
    return (pattern for pattern in patterns if holds_for(pattern, family))


def _others(chosen: Collection[Pattern]) -> list[Pattern]:
    """Patterns that the user did not choose."""
    slugs = {pattern.slug for pattern in chosen}
    return [pattern for pattern in all_patterns() if pattern.slug not in slugs]


def _verdicts(timeline: Timeline, look: Look, found: _Found, unchosen: Iterable[Pattern]) -> Verdicts:
    """What is explained by a rule that the user did not choose is explained all the same."""
    beside = _Found()
    for pattern in unchosen:
        beside.take(pattern, pattern.find, timeline)

    def reasons(windows: IntArray) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(reason.text for reason in some) for some in look.reasons(windows))

    candidates = tuple(one.candidate for one in (*found.detected, *beside.detected))
    return Verdicts(look.scores, candidates, reasons)
