"""docs/detector-features.md, from the features themselves."""

from __future__ import annotations

from ..model import Feature
from . import schema

_HEAD = f"""# The detector's features

What the forest of the detector knows of a window: {len(schema.FEATURES)} figures, all worked out by
`analyzer/detector/features`. A window is a module call, a tagged region or a run of neighbouring operators of one step.

- **Missing is not zero.** Where a trace does not tell (no shapes, no device, no frames, no memory records, no counters)
  the value is NaN. Of a trace that tells, nothing of something is 0.
- **Scales.** Shares are per cent, 0 to 100. Counts are log10(1 + x). Times, sizes, rates and ratios are log10. All fit
  into 16-bit floats.
- **Compute time** is the time of kernels and copies; in a recording without a device it is the operators' own time.
- **Backward windows** have the figures of `convolutions` and `attention` from the forward window whose operators they
  differentiate: the backward pass inherits what is wrong with the forward one.
- **Families of operators** are the fixed vocabulary of `families.py`; classes of kernels are `KernelClass`.

The order and the names make the version `{schema.SCHEMA}`; a model that was trained with another one is refused.
"""


def page() -> str:
    """The page: one row for each feature, by group."""
    sections = [
        _section(group.__name__.rpartition(".")[2], group.__doc__ or "", group.FEATURES) for group in schema.GROUPS
    ]
    return "\n".join([_HEAD, *sections])


def _section(name: str, about: str, features: tuple[Feature, ...]) -> str:
    rows = [f"| `{one.name}` | {one.unit.replace('|', '/')} | {one.why} |" for one in features]
    about = " ".join(about.split())
    return "\n".join([f"## {name}", "", about, "", "| feature | unit | what it tells |", "|---|---|---|", *rows, ""])
