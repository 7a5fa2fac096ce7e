"""A finding, as plain values: what the command line prints, the editor shows and the JSON report holds.

Lines and columns count from 1, columns in code points; an end column is one past the last character.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    """By predicted saving: warning from 10 % of the step, information from the threshold (1 %), hint below."""

    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


class Safety(str, Enum):
    """Whether a fix keeps results the same up to float rounding."""

    SAFE = "safe"
    UNSAFE = "unsafe"


class Stage(str, Enum):
    """At which level a fix works. Earlier stages come first: what is changed there changes what is left to do later."""

    ARCHITECTURE = "architecture"
    """What is computed: the model's structure, the shapes, what runs at all."""
    IMPLEMENTATION = "implementation"
    """How it is written: operators, layouts, synchronisations, the loop round the model."""
    HARDWARE = "hardware"
    """How it is run: precision, workers, pinning, launches, collectives, allocator."""


class How(str, Enum):
    """How a place in the source was found, best first."""

    STACK = "stack"
    TAG = "tag"
    MODULE = "module"
    SHAPE = "shape"
    ORDER = "order"
    OPERATOR = "operator"


class Grain(str, Enum):
    """How closely a place is known: what its line stands for."""

    LINE = "line"
    """The statement."""
    BLOCK = "block"
    """Somewhere inside the block that the statement opens, or what that calls."""
    CALL = "call"
    """Somewhere inside what the statement calls."""
    FUNCTION = "function"
    """Somewhere inside the function, or what it calls; the line is its `def`."""
    FILE = "file"
    """Somewhere in the file; the line is its first."""


CURED = "cured"
"""Id of the evidence that the source holds what fixes the finding: the recording is older than the fix."""
SPREAD = "spread"
"""Id of the evidence that says how much the saving differs from step to step."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One named figure, re-computable from the events named: positions in the file's `traceEvents`."""

    id: str
    name: str
    value: float | str
    unit: str
    events: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the workspace. `path` is relative to its root, with "/"."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    qualname: str
    """The function or class that holds it; "<module>" at top level."""
    how: How
    confidence: float = 1.0
    """That the event comes from what `grain` says."""
    grain: Grain = Grain.LINE
    cell: int | None = None
    """Of a notebook, the cell (from 1, all cells counted) whose lines `line` and `end_line` count; None for a file, and
    inside the program, where a notebook's cells are one text."""


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that helps: a caller with its call statement, the constructor, the other half of a pair."""

    message: str
    location: Location


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace a range of one file by `new_text`."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    new_text: str
    cell: int | None = None
    """As in `Location`."""


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit that removes the finding. `id` is stable: the pattern's slug, or slug/variant."""

    id: str
    title: str
    safety: Safety
    edits: tuple[TextEdit, ...]


class Verdict(str, Enum):
    """What becomes of a language model's answer."""

    CONFIRMED = "confirmed"
    """It agrees with itself when asked again, and with the first stage."""
    UNCONFIRMED = "unconfirmed"
    """It does not agree with itself, or was asked once only."""
    DISAGREES = "disagrees"
    """It agrees with itself, and not with the first stage."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a language model whose every figure is that of the evidence named."""

    text: str
    evidence: tuple[str, ...]
    """Ids of the finding's evidence, or of the rows that the diagnosis brings along."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a language model says of a finding, checked. Its sentences are its own; its figures are the trace's."""

    verdict: Verdict
    pattern: str
    """The slug that it names, or "none"."""
    stage: Stage
    cause: str
    claims: tuple[Claim, ...]
    claims_dropped: int
    """Claims that were not shown since a figure in them was not that of the evidence they name."""
    evidence: tuple[Evidence, ...]
    """What the claims name beyond the finding's own evidence."""
    fix: str
    """Id of one of the finding's fixes, or of `edit`; "" if it recommends none."""
    edit: Fix | None
    """The edit that it proposes itself: always unsafe, and left out if it did not pass the checks."""
    edit_refused: str
    """Why an edit that it proposed was left out; "" if none was."""
    confidence: str
    """Its own word: "low", "medium" or "high"."""
    agreement: float
    """Share of the answers, over evidence in different orders, that name this pattern and fix; 0 to 1."""
    answers: int
    model: str
    seconds: float
    cut: tuple[str, ...] = ()
    """What did not fit into the prompt, in words."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One occurrence of a pattern, with what it costs and what would be saved. The JSON report's element."""

    code: str
    slug: str
    severity: Severity
    title: str
    message: str
    cost_us_per_step: float
    saving_us_per_step: float
    saving_pct: float
    probability: float
    evidence: tuple[Evidence, ...]
    location: Location | None = None
    related: tuple[Related, ...] = ()
    fixes: tuple[Fix, ...] = ()
    diagnosis: Diagnosis | None = None
    stage: Stage = Stage.IMPLEMENTATION
    removed_by: tuple[str, ...] = ()
    """Slugs of findings whose fix leaves little of this one."""
    stale: str = ""
    """Why it has no place in the source of today, in a sentence: what was measured has been removed or rewritten since
    the recording. "" for all others."""


@dataclass(frozen=True, slots=True)
class DetectorSummary:
    """What the detector says of the whole recording. Windows are those of the typical step."""

    windows: int
    bad: int
    """Windows that are more likely bad than the detector's threshold says."""
    unknown: int
    """Windows that are unlike all that the detector has learned from: of them it says nothing."""
    single: int
    """Windows of all steps that are bad in one step only."""
    worst: str
    """The bad window that takes the greatest part of the step, probability times share; "" if none is bad."""
    worst_probability: float
    worst_kind: str
    """The likeliest anti-pattern there; "" if none stands out."""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """The `trace` object of the JSON report."""

    paths: tuple[str, ...]
    device: str
    steps: int
    step_us: float
    gpu_idle_pct: float | None
    """None for a CPU-only trace."""
    step_idle_pct: float | None
    breakdown: dict[str, float]
    problems: tuple[str, ...]
    missing: tuple[str, ...]
    """Profiler options that would have given more, e.g. `with_stack=True`."""
    combined_saving_us_per_step: float = 0.0
    """What all findings at information or above save together: one replay with all their edits, no sum."""
    combined_saving_pct: float = 0.0
    model_type: str = ""
    """The family that the model was taken for; "" if for none."""
    detector: DetectorSummary | None = None
    """None where no detector was asked."""


@dataclass(frozen=True, slots=True)
class Hotspot:
    """Time per step of one function or module, for code lenses."""

    path: str
    line: int
    qualname: str
    us_per_step: float
    pct_of_step: float


@dataclass(frozen=True, slots=True)
class HeadRow:
    """One attention head, where statistics were recorded."""

    head: int
    importance: float
    """Its share of what the layer does; all heads' sum to 1."""
    work_share: float
    """Its share of the layer's time."""


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """One attention layer. None stands for what the trace does not tell; times are medians over the steady steps."""

    name: str
    location: Location | None
    backend: str
    """"flash", "efficient", "math", "unfused", "triton", "ck", "cudnn" or "fused"."""
    share_pct: float
    """All of it, backward pass included, in per cent of the step."""
    us_per_step: float
    backward_us_per_step: float
    calls_per_step: float
    batch: int | None
    heads: int | None
    head_dim: int | None
    query_tokens: int | None
    key_tokens: int | None
    flops_per_step: float | None
    """Of the two products, forward."""
    achieved_tflops: float | None
    peak_tflops: float | None
    compute_ratio: float | None
    """Forward computation over all of the forward time, 0 to 1."""
    copies_us_per_step: float
    masks_us_per_step: float
    cache_us_per_step: float
    communication_us_per_step: float
    heads_measured: tuple[HeadRow, ...] = ()


@dataclass(frozen=True, slots=True)
class FeatureMapRow:
    """One call of one layer in the typical step: what goes in and what comes out."""

    name: str
    """The module that called it (`Conv2d_3`), else the operator."""
    inside: str
    """The module round that one; "" if none is known."""
    op: str
    location: Location | None
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    """Empty where nothing tells it."""
    dtype: str
    output_bytes: int | None
    layout: str
    """Of the input in memory: "NCHW", "NHWC", "NCDHW", "NDHWC", "other"; "" where strides were not recorded."""


@dataclass(frozen=True, slots=True)
class LayoutChangeRow:
    """One place where tensors change between channels first and channels last."""

    change: str
    """"NCHW -> NHWC", "HWC -> CHW" and the like; "NCHW <-> NHWC" where only the kernel's kind is known."""
    cause: str
    """The operator that Python called; "" where it is not known."""
    by_library: bool
    """Whether the library transposes for its own ends, not the program."""
    module: str
    location: Location | None
    shape: tuple[int, ...]
    """The largest tensor; empty where it is not known."""
    bytes_per_step: int | None
    count_per_step: float
    us_per_step: float


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One kernel that hardware counters were read of. Means over its measured launches; None where not measured."""

    kernel: str
    launches: int
    """How many were measured."""
    us_per_step: float | None
    """From the trace; None where it has no such kernel."""
    dram_bytes: float | None
    """Read and written by a launch."""
    dram_gb_per_s: float | None
    l2_hit_pct: float | None
    tensor_pct: float | None
    """Share of the cycles in which the tensor cores' pipe was active."""
    tensor_instructions: float | None
    flops: float | None
    """Of the plain cores, by a launch."""


@dataclass(frozen=True, slots=True)
class SampleRow:
    """What the driver said of the device over some steps of a recording run."""

    name: str
    """With its unit: `gpu_busy_pct`, `memory_used_bytes`, `sm_clock_mhz`, `power_w`."""
    mean: float
    largest: float


@dataclass(frozen=True, slots=True)
class KindRow:
    """One anti-pattern that a window may show."""

    slug: str
    probability: float


@dataclass(frozen=True, slots=True)
class WindowRow:
    """What the detector says of one window of one step, which stands for its like in the other steps."""

    name: str
    """Of the part of the program: "forward: SwinBlock_3"."""
    step: int
    """The number of the step, as the profiler counts."""
    steps: int
    """How many of the steps looked at have it."""
    start_us: float
    """From the beginning of the step."""
    end_us: float
    share_pct: float
    """Of the step: the host's time or the device's, whichever is the greater part of its own."""
    bad: float
    """P(any anti-pattern), of all steps; in a list of single ones, of this step."""
    kinds: tuple[KindRow, ...]
    """The likeliest first; what is hardly likely is left out."""
    is_unknown: bool
    """Unlike all that the detector has learned from: the probabilities say little."""
    is_single: bool
    """Bad in this step only."""
    location: Location | None


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables of a report."""

    attention: tuple[AttentionRow, ...] = ()
    layout_changes: tuple[LayoutChangeRow, ...] = ()
    """The one that takes longest first."""
    feature_maps: tuple[FeatureMapRow, ...] = ()
    """Only where they were asked for: there are hundreds."""
    counters: tuple[CounterRow, ...] = ()
    """Where hardware counters were recorded; what takes longest first."""
    device_samples: tuple[SampleRow, ...] = ()
    """Where the driver was asked while recording."""
    windows: tuple[WindowRow, ...] = ()
    """Only where they were asked for: the typical step's in order of time, then those that only other steps have."""
    single_windows: tuple[WindowRow, ...] = ()
    """Only where they were asked for: those that are bad in one step only, which may say nothing about the next run."""


@dataclass(frozen=True, slots=True)
class Report:
    """What `place` answers: everything that is shown anywhere, and nothing that needs the trace again."""

    trace: TraceSummary
    findings: tuple[Finding, ...]
    hotspots: tuple[Hotspot, ...] = ()
    tables: Tables = Tables()
    schema: int = 1
