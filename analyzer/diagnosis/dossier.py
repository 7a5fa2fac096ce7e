"""A dossier: all that the second stage is told of one finding, as plain values. Nothing here needs the trace again."""

from __future__ import annotations

from dataclasses import dataclass

from ..findings import Evidence, Safety, Stage

NO_PATTERN = "none"
"""What an answer names where nothing is wrong."""
NO_FIX = "none"
"""What an answer names where none of the offered fixes helps."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One anti-pattern that the first stage thinks of, with what it thinks."""

    slug: str
    meaning: str
    """What the pattern is, in one sentence."""
    stage: Stage
    by_rule: float
    """Probability that the rules give it here, 0 to 1; 0 where no rule found it."""
    by_detector: float | None
    """The detector's P(kind) of the windows there; None where no detector was asked."""


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One node of the window's call tree, medians over the steady steps. Its children follow it, one deeper."""

    id: str
    depth: int
    name: str
    calls: float
    """Per step."""
    total_us: float
    self_us: float
    """Both on the host; 0 for device work."""
    share_pct: float
    """Of the step: the host's time or the device's, whichever is the greater."""
    device_us: float | None = None
    """What the device spends on the work launched in it; None for a run without a device."""


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One module of the model's structure."""

    id: str
    depth: int
    name: str
    """As in the trace or the source: "SwinBlock_3"."""
    input_shape: tuple[int, ...]
    """Empty where not known; so is the next."""
    output_shape: tuple[int, ...]
    share_pct: float | None
    """Of the step; None where the trace does not tell."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The source of the function that a finding lies in."""

    path: str
    """Relative to the workspace, with "/"."""
    qualname: str
    first_line: int
    """In the file, from 1."""
    lines: tuple[str, ...]
    marked_line: int
    """Of the finding, in the file, from 1."""


@dataclass(frozen=True, slots=True)
class OfferedFix:
    """One of the fixes that the code action list offers for the finding."""

    id: str
    title: str
    safety: Safety


@dataclass(frozen=True, slots=True)
class Dossier:
    """See the head of the file. Ids of evidence, tree rows and layer rows are unique within a dossier.

    Evidence keeps the ids that it has in the finding, so that a claim's ids hold there too; `figures.figures_of` gives
    every id that a claim may name.
    """

    slug: str
    """Of the finding; "" for a window that no rule speaks of."""
    summary: str
    """The finding's message, or what the window is."""
    device: str
    torch_version: str
    is_training: bool
    step_us: float
    cost_us_per_step: float
    saving_us_per_step: float
    """By the what-if replay."""
    saving_pct: float
    probability: float
    """The first stage's, of the finding."""
    bad: float | None
    """The detector's P(any anti-pattern) of the windows there; None where no detector was asked."""
    choices: tuple[Choice, ...]
    """The likeliest first; an answer names one of them, or `NO_PATTERN`."""
    evidence: tuple[Evidence, ...]
    tree: tuple[TreeRow, ...]
    layers: tuple[LayerRow, ...]
    source: Excerpt | None
    fixes: tuple[OfferedFix, ...]
    missing: tuple[str, ...] = ()
    """Profiler options that would have told more."""
