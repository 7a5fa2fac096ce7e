"""The model card as a page for people: `docs/detector-model.md` is what this makes of the shipped card."""

from __future__ import annotations

from .card import Card, Figures, Interval

_NAMES = (
    ("auc_bad", "AUC-ROC of P(bad)"),
    ("ap_bad", "average precision of P(bad)"),
    ("ece", "expected calibration error"),
    ("kind_top1", "kind, first guess right"),
    ("kind_top3", "kind, among the first three"),
)


def as_page(card: Card) -> str:
    """Markdown, ending in a newline."""
    parts = [_head(card), _data(card), _kinds(card), _figures(card), _reliability(card), _limits(card), _making(card)]
    return "\n\n".join(parts) + "\n"


def _head(card: Card) -> str:
    votes = card.votes
    return f"""# The detector's model card

Made from `analyzer/detector/model/card.json` by `torchtraceap train detector --page`; not edited by hand.

A forest of random trees on {len(card.features)} features of a window and a small network on its events (up to
{card.length}, with {len(card.channels)} figures each) say how likely a window of a trace is to show a performance
anti-pattern, and which of {len(card.kinds)} kinds it is. Their votes are weighed by a logistic regression that was
fitted on families of models that neither had learned from:

    logit P(bad)     = {votes.bad_forest:.3f} logit forest + {votes.bad_network:.3f} logit network {votes.bad_bias:+.3f}
    log P(kind|bad)  = {votes.kind_forest:.3f} log forest + {votes.kind_network:.3f} log network + constant

A window counts as bad from P(bad) = {card.threshold:.2f} on, where precision and recall balance. Input schema:
`{card.schema}`; a program that makes another one refuses the models."""


def _data(card: Card) -> str:
    data = card.data
    return f"""## Data

{data.windows:,} windows, {data.bad_windows:,} of them bad, from {data.traces:,} traces of {data.runs:,} runs of
generated programs (`bench/corpus`); several traces of one run differ in what was recorded.

- Families learned from: {", ".join(data.families)}.
- Devices learned from: {", ".join(data.devices)}.
- Families kept for the test: {", ".join(data.test_families)}.
- Devices kept for the test: {", ".join(data.test_devices)}."""


def _kinds(card: Card) -> str:
    rows = [f"| {slug} | {count:,} |" for slug, count in card.data.windows_by_kind.items()]
    return "\n".join(["## Kinds", "", "| kind | windows learned from |", "|---|---:|", *rows])


def _figures(card: Card) -> str:
    """One table; a column for each set of windows."""
    head = "| | " + " | ".join(figures.what for figures in card.figures) + " |"
    rows = [
        f"| {name} | " + " | ".join(_text(getattr(one, key)) for one in card.figures) + " |" for key, name in _NAMES
    ]
    sizes = "| windows (bad), runs | " + " | ".join(_size(figures) for figures in card.figures) + " |"
    note = "In brackets the 95 % interval of a bootstrap over runs."
    return "\n".join(["## Figures", "", note, "", head, "|---" * (len(card.figures) + 1) + "|", *rows, sizes])


def _text(figure: Interval) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "not known"
    return f"{figure.value:.3f} ({figure.low:.3f}-{figure.high:.3f})"


def _size(figures: Figures) -> str:
    return f"{figures.windows:,} ({figures.bad_windows:,}), {figures.runs:,}"


def _reliability(card: Card) -> str:
    rows = [f"| {bar.said:.2f} | {bar.seen:.2f} | {bar.windows:,} |" for bar in card.reliability]
    return "\n".join(
        [
            "## Reliability",
            "",
            "What was said of windows of families left out, and how many of them were bad.",
            "",
            "| P(bad), mean | share that is bad | windows |",
            "|---:|---:|---:|",
            *rows,
        ]
    )


def _limits(card: Card) -> str:
    return "\n".join(["## Limits", "", *(f"- {sentence}" for sentence in card.limits)])


def _making(card: Card) -> str:
    made_with = ", ".join(f"{name} {version}" for name, version in card.made_with.items())
    return f"""## Making it again

    python -m bench.corpus
    torchtraceap train detector --corpus bench/corpus/features --out analyzer/detector/model --seed {card.seed}

Made with {made_with}."""
