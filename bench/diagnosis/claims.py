"""Sentences about a dossier's figures, as somebody would write them who has read it: each quotes figures as the prompt
gives them, with the ids they stand by. Worded in many ways, so that the evidence is learned and not a template."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from torchtraceap.analyzer.assess import LIKELY
from torchtraceap.analyzer.diagnosis.answer import LONGEST_CLAIM, GivenClaim
from torchtraceap.analyzer.diagnosis.checks import check_claims
from torchtraceap.analyzer.diagnosis.dossier import Choice, Dossier, LayerRow, TreeRow
from torchtraceap.analyzer.diagnosis.figures import (
    BAD,
    COST,
    SAVING,
    SAVING_PCT,
    STEP,
    figure_text,
    headline,
    number_text,
    numbered,
    own_evidence,
)
from torchtraceap.analyzer.diagnosis.known import Known
from torchtraceap.analyzer.diagnosis.text import name as short
from torchtraceap.analyzer.findings import CURED, Evidence

_COST = (
    "This takes {cost} of a step of {step}.",
    "{cost} of each {step} step go here.",
    "Of {step} per step, {cost} are spent on it.",
    "A step lasts {step}, and this is {cost} of it.",
    "It costs {cost} per step.",
)
_SAVING = (
    "Without it a step would be {saving} shorter, {pct}.",
    "The replay predicts a saving of {saving} per step ({pct}).",
    "About {saving} of {step} would be saved.",
    "{pct} of the step would go away.",
    "By replay {saving} per step can be saved.",
)
_NO_SAVING = (
    "It would save {saving} of {step} only.",
    "No more than {pct} of the step would be saved.",
    "The replay gives a saving of just {saving} per step ({pct}).",
)
_OWN = (
    "{name}: {value}.",
    "The trace gives {value} for {name}.",
    "Measured here: {value} ({name}).",
    "{name} comes to {value}.",
    "The evidence has {value} for {name}.",
)
_BOTH = (
    "The rule gives {slug} {rule}, the detector {detector}.",
    "{slug} has {rule} by rule and {detector} by the detector.",
    "Rule and detector say {rule} and {detector} for {slug}.",
)
_DETECTOR = (
    "The detector puts {slug} at {detector}.",
    "{slug} has {detector} by the detector.",
    "By the detector the probability of {slug} is {detector}.",
)
_RULE = ("The rule gives {slug} {rule}.", "By rule the probability of {slug} is {rule}.")
_BUT = (
    "The detector gives {slug} {detector}, but the rule's evidence is clearer.",
    "The detector would rather say {slug} ({detector}), the rule does not.",
)
_UNLIKELY = (
    "Even the likeliest reason, {slug}, has {detector} only.",
    "The detector gives {slug} no more than {detector}.",
    "{slug} is at {detector}, too little to blame it.",
)
_BAD = (
    "The detector takes it for bad with {bad}.",
    "That anything is wrong here has a probability of {bad}.",
    "The detector's probability of a fault is {bad}.",
)
_NOT_BAD = (
    "That anything is wrong has a probability of {bad} only.",
    "The detector sees no fault: {bad}.",
    "With {bad} the detector takes this part for healthy.",
)
_TREE = (
    "{name} takes {total} per step.",
    "{name} runs {calls} times per step and takes {total}.",
    "{share} of the step is {name}.",
    "In the call tree {name} has {total}, {share} of the step.",
)
_LAYER = ("{name} has {share} of the step.", "{share} of the step is spent in {name}.")


_FRAME = re.compile(r"(?:.*[/\\\\])?(?P<file>[^/\\\\]+\.py)\(\d+\): (?P<function>.+)")
_NEARLY_ALL_PCT = 90.0
_SOME = 0.2
"""What the detector gives at the least where it names a kind."""


@dataclass(frozen=True, slots=True)
class _Said:
    """A claim that might be made, and what it is about."""

    about: str
    claim: GivenClaim


def claims_for(dossier: Dossier, shown: frozenset[str], pattern: Choice | None, rng: Random) -> tuple[GivenClaim, ...]:
    """One to three claims that speak for a pattern, or for none. `shown` has the ids that the prompt has room for.

    Names with figures in them may not pass the check of claims; what does not is not said."""
    known = Known(dossier)
    found = list(_for_none(dossier, rng) if pattern is None else _for_pattern(dossier, pattern, rng))
    found = [one for one in found if shown.issuperset(one.claim.evidence) and len(one.claim.text) <= LONGEST_CLAIM]
    found = [one for one in found if check_claims([one.claim], known).claims]
    by_topic: dict[str, list[_Said]] = {}
    for one in found:
        by_topic.setdefault(one.about, []).append(one)
    topics = sorted(by_topic, key=lambda about: _WEIGHT[about] * rng.random(), reverse=True)
    chosen = [rng.choice(by_topic[about]) for about in topics[: rng.choice((1, 2, 2, 2, 3))]]
    return tuple(one.claim for one in chosen)


_WEIGHT = {"own": 3.0, "cost": 1.5, "saving": 1.5, "voices": 2.0, "bad": 1.0, "tree": 1.2, "layer": 0.7, "but": 2.0}


def _for_pattern(dossier: Dossier, pattern: Choice, rng: Random) -> Iterator[_Said]:
    figures = {one.id: figure_text(one) for one in headline(dossier)}
    yield _said("cost", rng.choice(_COST), (COST, STEP), figures)
    if dossier.slug == pattern.slug:
        if dossier.saving_us_per_step > 0:
            yield _said("saving", rng.choice(_SAVING), (SAVING, SAVING_PCT, STEP), figures)
        yield from (_own(one, rng) for one in own_evidence(dossier) if _is_telling(one))
    ids = {choice.slug: id for id, choice in numbered(dossier.choices)}
    yield _voices(ids[pattern.slug], pattern, rng)
    for other in dossier.choices:
        if pattern.by_rule >= LIKELY and (other.by_detector or 0.0) > max(pattern.by_detector or 0.0, _SOME):
            yield _choice("but", rng.choice(_BUT), ids[other.slug], other)
    if dossier.bad is not None and dossier.bad >= 0.5:
        yield _said("bad", rng.choice(_BAD), (BAD,), figures)
    yield from _rows(dossier, rng)


def _for_none(dossier: Dossier, rng: Random) -> Iterator[_Said]:
    figures = {one.id: figure_text(one) for one in headline(dossier)}
    if dossier.bad is not None and dossier.bad < 0.5:
        yield _said("bad", rng.choice(_NOT_BAD), (BAD,), figures)
    if dossier.slug:
        yield _said("saving", rng.choice(_NO_SAVING), (SAVING, SAVING_PCT, STEP), figures)
    else:
        yield _said("cost", rng.choice(_COST[:4]), (COST, STEP), figures)
    likeliest = max(dossier.choices, key=lambda choice: choice.by_detector or 0.0, default=None)
    if likeliest is not None and likeliest.by_detector is not None and likeliest.by_detector < 0.5:
        id = next(id for id, choice in numbered(dossier.choices) if choice == likeliest)
        yield _choice("voices", rng.choice(_UNLIKELY), id, likeliest)
    yield from _rows(dossier, rng)


def _rows(dossier: Dossier, rng: Random) -> Iterator[_Said]:
    for row in sorted(telling_rows(dossier), key=lambda row: -row.share_pct)[:4]:
        yield _said("tree", rng.choice(_TREE), (row.id,), _of_tree(row))
    for layer in sorted(dossier.layers, key=lambda layer: -(layer.share_pct or 0.0))[:1]:
        if layer.share_pct:
            yield _said("layer", rng.choice(_LAYER), (layer.id,), _of_layer(layer))


def telling_rows(dossier: Dossier) -> list[TreeRow]:
    """Rows of the call tree that are not all of the step."""
    return [row for row in dossier.tree if row.share_pct < _NEARLY_ALL_PCT]


def _own(one: Evidence, rng: Random) -> _Said:
    text = rng.choice(_OWN)
    name = one.name[:1].upper() + one.name[1:] if text.startswith("{name}") else one.name
    return _said("own", text, (one.id,), {"name": name, "value": figure_text(one)})


def _is_telling(one: Evidence) -> bool:
    """Whether a rule's evidence is a figure of the trace, and short enough to be told."""
    return one.id != CURED and not one.id.startswith(("detector", "no-fix")) and len(figure_text(one)) <= 60


def _voices(id: str, pattern: Choice, rng: Random) -> _Said:
    if pattern.by_detector is None:
        texts: Sequence[str] = _RULE
    else:
        texts = _BOTH if pattern.by_rule > 0 else _DETECTOR
    return _choice("voices", rng.choice(texts), id, pattern)


def _choice(about: str, text: str, id: str, choice: Choice) -> _Said:
    detector = "" if choice.by_detector is None else number_text(choice.by_detector)
    return _said(about, text, (id,), {"slug": choice.slug, "rule": number_text(choice.by_rule), "detector": detector})


def _of_tree(row: TreeRow) -> dict[str, str]:
    return {
        "name": spoken(row.name),
        "total": f"{number_text((row.total_us or row.device_us or 0.0) / 1000.0)} ms",
        "share": f"{number_text(round(row.share_pct, 1))} %",
        "calls": number_text(row.calls),
    }


def spoken(name: str) -> str:
    """A row's name as people say it: `forward (vit.py)` for the frame `models/vit.py(78): forward`."""
    frame = _FRAME.fullmatch(name)
    return f"{frame['function']} ({frame['file']})" if frame else short(name)


def _of_layer(row: LayerRow) -> dict[str, str]:
    return {"name": short(row.name), "share": f"{number_text(round(row.share_pct or 0.0, 1))} %"}


def _said(about: str, text: str, ids: Sequence[str], figures: dict[str, str]) -> _Said:
    """The sentence with its figures, and of the ids those whose figures it quotes."""
    placed = {**figures, "pct": figures.get(SAVING_PCT, "")}
    cited = [id for id in ids if _field(id) in text or id not in _FIELDS]
    sentence = ascii_text(text.format(**{name: value for name, value in placed.items() if "-" not in name}))
    return _Said(about, GivenClaim(text=sentence, evidence=tuple(cited)))


_FIELDS = {COST: "{cost}", STEP: "{step}", SAVING: "{saving}", SAVING_PCT: "{pct}", BAD: "{bad}"}


def _field(id: str) -> str:
    return _FIELDS.get(id, "{}")


def ascii_text(text: str) -> str:
    """Text of printable ASCII, as answers have it."""
    text = text.replace("…", "...").replace("µ", "u").replace("×", "x").replace("→", "->").replace("–", "-")
    plain = unicodedata.normalize("NFKD", text)
    return "".join(character if " " <= character <= "~" else "?" for character in plain)
