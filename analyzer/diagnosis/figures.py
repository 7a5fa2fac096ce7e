"""The figures of a dossier that a claim may name, in one place: each with its id, its value and its unit.

Ids are those of the finding's own evidence where a figure is one; `step`, `cost`, `saving` and the like for the
headline; `c1`... for what the first stage thinks of each choice (numbered by slug, so that the number tells no rank),
and those of the rows for the call tree and the layers. An id may have several figures: a row of the tree has its time,
its own time, its share and its calls.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..findings import Evidence
from .dossier import Choice, Dossier, LayerRow, TreeRow

STEP, COST, SAVING, SAVING_PCT = "step", "cost", "saving", "saving-pct"
PROBABILITY, BAD = "probability", "bad"
HEADLINE = frozenset({STEP, COST, SAVING, SAVING_PCT, PROBABILITY, BAD})
"""Ids that the headline's figures have; the finding's own evidence has some of them, with the same meaning."""

_LEAST_OWN = 0.05
"""Share of a node's time, below which its own time is not told."""


def figures_of(dossier: Dossier) -> tuple[Evidence, ...]:
    """Every figure of the dossier, unrounded, in the unit in which the prompt gives it: times in ms."""
    return (
        *headline(dossier),
        *(figure for number, choice in numbered(dossier.choices) for figure in of_choice(number, choice)),
        *own_evidence(dossier),
        *(figure for row in dossier.tree for figure in of_tree_row(row)),
        *(figure for row in dossier.layers for figure in of_layer_row(row)),
    )


def headline(dossier: Dossier) -> Iterator[Evidence]:
    """What the finding costs, saves, and how sure it is; of a window without a finding, what it costs."""
    yield Evidence(STEP, "time of one step", _ms(dossier.step_us), "ms")
    yield Evidence(COST, "time that this takes per step", _ms(dossier.cost_us_per_step), "ms")
    if dossier.slug:
        yield Evidence(SAVING, "predicted saving per step", _ms(dossier.saving_us_per_step), "ms")
        yield Evidence(SAVING_PCT, "predicted saving, share of the step", dossier.saving_pct, "%")
        yield Evidence(PROBABILITY, "probability of the finding, by the first stage", dossier.probability, "")
    if dossier.bad is not None:
        yield Evidence(BAD, "probability that anything is wrong here, by the detector", dossier.bad, "")


def own_evidence(dossier: Dossier) -> tuple[Evidence, ...]:
    """The dossier's evidence but for what the headline gives, times in ms."""
    return tuple(_in_ms(one) for one in dossier.evidence if one.id not in HEADLINE)


def numbered(choices: tuple[Choice, ...]) -> list[tuple[str, Choice]]:
    """The choices in their order, each with its id."""
    ids = {slug: f"c{number}" for number, slug in enumerate(sorted(one.slug for one in choices), 1)}
    return [(ids[one.slug], one) for one in choices]


def of_choice(number: str, choice: Choice) -> Iterator[Evidence]:
    """What rules and detector give it."""
    yield Evidence(number, f"probability of {choice.slug}, by rule", choice.by_rule, "")
    if choice.by_detector is not None:
        yield Evidence(number, f"probability of {choice.slug}, by detector", choice.by_detector, "")


def of_tree_row(row: TreeRow) -> Iterator[Evidence]:
    """Times and share of a node of the call tree."""
    if row.total_us:
        yield Evidence(row.id, f"{row.name}: time per step", _ms(row.total_us), "ms")
    if has_own_time(row):
        yield Evidence(row.id, f"{row.name}: own time per step", _ms(row.self_us), "ms")
    if row.device_us:
        yield Evidence(row.id, f"{row.name}: device time per step", _ms(row.device_us), "ms")
    yield Evidence(row.id, f"{row.name}: share of the step", row.share_pct, "%")
    yield Evidence(row.id, f"{row.name}: calls per step", row.calls, "")


def has_own_time(row: TreeRow) -> bool:
    """Whether a node's own time is worth a word."""
    return row.self_us >= _LEAST_OWN * row.total_us > 0.0


def of_layer_row(row: LayerRow) -> Iterator[Evidence]:
    """Sizes and share of a module."""
    for shape, which in ((row.input_shape, "input"), (row.output_shape, "output")):
        if shape:
            yield Evidence(row.id, f"{row.name}: {which}", shape_text(shape), "")
    if row.share_pct is not None:
        yield Evidence(row.id, f"{row.name}: share of the step", row.share_pct, "%")


def shape_text(shape: tuple[int, ...]) -> str:
    """`8x64x56x56`."""
    return "x".join(map(str, shape))


def number_text(value: float) -> str:
    """As a prompt writes a figure: whole numbers as they are, others with three significant figures at the least."""
    if value == round(value) or abs(value) >= 1000.0:
        return f"{value:.0f}"
    text = f"{value:.3g}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if "e" in text else text


def figure_text(figure: Evidence) -> str:
    """Its value with its unit."""
    value = figure.value if isinstance(figure.value, str) else number_text(figure.value)
    return f"{value} {figure.unit}".rstrip()


def _in_ms(one: Evidence) -> Evidence:
    if one.unit in ("us", "µs") and not isinstance(one.value, str):
        return Evidence(one.id, one.name, _ms(one.value), "ms", one.events)
    return one


def _ms(value_us: float) -> float:
    return value_us / 1000.0
