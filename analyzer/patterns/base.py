"""What a rule is. A module of this folder that defines `PATTERN: Pattern` is one; nothing else names it.

A rule reads the timeline and yields candidates. It never states a saving: it says what its fix would change (an
`Edit`), and the what-if replay answers. It never reads source: `codemap/fixes/<slug>.py` confirms and fixes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from ..detector.model import WindowScores
from ..findings import Evidence, Stage
from ..timeline.edit import Edit, no_rows
from ..timeline.family import Family
from ..timeline.model import Timeline
from ..trace.model import IntArray


class FixKind(str, Enum):
    """The best fix that a pattern has: many findings get a lesser one, or none."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    ADVICE = "advice"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One time the pattern shows: where to look for its source, what it costs, what the fix would change."""

    anchor: int
    """The host row that the source line caused (an operator, an annotation, a python frame). For backward work
    the rule names the forward operator."""
    edit: Edit
    cost_rows: IntArray = field(default_factory=no_rows)
    """Events whose time is the cost: device rows where there is a device, else host rows."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One pattern at one site of the program, with all its occurrences in the steady steps.

    Occurrences of one site share their call path as far as the trace shows it (`timeline.sites`); `codemap.place`
    splits or joins candidates by source line once it knows it, and the saving is replayed again.
    """

    what: str
    """The fault as a clause that starts a sentence, without figures: "attention runs as three passes"."""
    remedy: str
    """What would be done instead, as a noun phrase: "the fused call"."""
    occurrences: tuple[Occurrence, ...]
    evidence: tuple[Evidence, ...]
    probability: float = 1.0
    """How sure the rule is that this is the pattern, from the trace alone."""
    first: Edit | None = None
    """What has to be out of the way before the fix shows, where it does not by itself (a device that is made faster
    gains nothing while the host is late). The saving is then counted from a step without that."""
    first_clause: str = ""
    """The same in words that end the message: "once the host keeps up"."""
    cost_us_per_step: float | None = None
    """Given where the cost is no sum over events (idle time that a sync causes)."""
    is_periodic: bool = False
    """For work that comes round once in several steps, at the start of each epoch for one. What it costs and saves is
    then its share of all steps together, as so much of a median step; the steps' median would not see it."""
    unmeasured: str = ""
    """For what the source may show but this trace cannot price: the profiler option or recording that would tell
    ("profile_memory=True", "a recording of all ranks"). Such a candidate is only ever a hint, called possible, and is
    dropped where the source does not confirm it."""
    needs_source: bool = False
    """True where only the source can tell that there is a fault at all, however dear it would be: the candidate is
    dropped unless the source confirms it."""
    unexplained: bool = False
    """For what the detector alone finds: nobody knows what would mend it, so no saving is predicted. It is only ever a
    hint that tells the cost; `remedy` says in a clause what it looks like."""
    informational: bool = False
    """True for findings that predict no saving (`trace-lacks-evidence`): shown as information whatever the
    threshold."""

    @property
    def edit(self) -> Edit:
        """What the fix of all occurrences amounts to."""
        edit = Edit.union(occurrence.edit for occurrence in self.occurrences)
        return replace(edit, is_periodic=True) if self.is_periodic else edit


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What rules and detector said of a trace, for a pattern that shows only once they have."""

    scores: WindowScores
    candidates: tuple[Candidate, ...]
    """What all rules found, those too that the user did not choose."""
    reasons: Callable[[IntArray], tuple[tuple[str, ...], ...]]
    """Why the detector takes each of these windows (indices) for bad, in words: "name: figure", the weightiest
    first."""


def _finds_nothing(timeline: Timeline) -> Iterable[Candidate]:
    return ()


@dataclass(frozen=True, slots=True)
class Pattern:
    """One anti-pattern of the catalogue."""

    code: str
    slug: str
    title: str
    fix: FixKind
    find: Callable[[Timeline], Iterable[Candidate]] = _finds_nothing
    needs: tuple[str, ...] = ()
    """What the trace must hold, for `trace-lacks-evidence`: any of "stack", "shapes", "steps", "device", "launches"."""
    group: str = ""
    """`inefficient_conv` (5xx), `attention_bottleneck` (6xx), or the hundreds' name."""
    stage: Stage = Stage.IMPLEMENTATION
    families: frozenset[Family] = frozenset()
    """Model families that the rule is asked for; empty: all of them."""
    compare: Callable[[Timeline, Verdicts], Iterable[Candidate]] | None = None
    """For a pattern that no rule finds: asked instead of `find` when all rules and the detector have spoken."""
