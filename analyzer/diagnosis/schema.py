"""What an answer may look like, as a JSON schema to write by, and the way back from JSON to an `Answer`.

Everything that decides is an enumeration: by constrained decoding no model can name what it was not offered, and there
is no number whose digits could go on for ever. Texts are of printable ASCII, so that no figure hides in another
alphabet.
"""

from __future__ import annotations

from typing import get_args

import msgspec

from ..findings import Stage
from .answer import LONGEST_CAUSE, LONGEST_CLAIM, LONGEST_EDIT, MOST_CLAIMS, Answer, Confidence
from .backends.base import JsonSchema
from .dossier import NO_FIX, NO_PATTERN, Dossier
from .figures import figures_of
from .prompt import EDIT

MOST_IDS = 3
"""That one claim names."""
_FENCE = "```"


class AnswerError(ValueError):
    """What a model wrote is no answer. The text says why."""


def answer_schema(dossier: Dossier, *, with_edit: bool = False) -> JsonSchema:
    """The schema of answers to a dossier, fields in the order of `Answer`. `with_edit` lets it rewrite the function:
    only where there is one, and nothing for a small model."""
    with_edit = with_edit and dossier.source is not None
    ids = list(dict.fromkeys(figure.id for figure in figures_of(dossier)))
    cited = {"type": "array", "items": {"enum": ids}, "minItems": 1, "maxItems": MOST_IDS}
    claim = _object({"text": _text(LONGEST_CLAIM), "evidence": cited})
    fields: dict[str, object] = {
        "pattern": {"enum": [*(choice.slug for choice in dossier.choices), NO_PATTERN]},
        "stage": {"enum": [stage.value for stage in Stage]},
        "claims": {"type": "array", "items": claim, "minItems": 1, "maxItems": MOST_CLAIMS},
        "cause": _text(LONGEST_CAUSE),
        "fix": {"enum": [*(fix.id for fix in dossier.fixes), *([EDIT] if with_edit else []), NO_FIX]},
    }
    if with_edit:
        fields["edit"] = {"type": "string", "maxLength": LONGEST_EDIT}
    fields["confidence"] = {"enum": list(get_args(Confidence))}
    return _object(fields)


def parse_answer(text: str, dossier: Dossier) -> Answer:
    """The answer that `text` is, alone or in one code fence as chatty models have it.

    Raises AnswerError if it is no JSON (cut off, say), not of the schema, or names a pattern or a fix that was not
    offered. What its claims say and name is for checks.py.
    """
    try:
        answer = msgspec.json.decode(_without_fence(text), type=Answer)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise AnswerError(f"no valid answer: {error}") from error
    if answer.pattern not in {NO_PATTERN, *(choice.slug for choice in dossier.choices)}:
        raise AnswerError(f"it names the pattern {answer.pattern!r:.80}, which was not offered")
    if answer.fix not in {NO_FIX, EDIT, *(fix.id for fix in dossier.fixes)}:
        raise AnswerError(f"it names the fix {answer.fix!r:.80}, which was not offered")
    return answer


def _object(fields: dict[str, object]) -> dict[str, object]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _text(most: int) -> dict[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": most, "pattern": r"^[ -~]+$"}


def _without_fence(text: str) -> str:
    text = text.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE):
        text = text[len(_FENCE) : -len(_FENCE)].removeprefix("json")
    return text
