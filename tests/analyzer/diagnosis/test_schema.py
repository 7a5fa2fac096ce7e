from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest

from torchtraceap.analyzer.diagnosis.answer import LONGEST_CLAIM, Answer, GivenClaim
from torchtraceap.analyzer.diagnosis.schema import AnswerError, answer_schema, parse_answer

from .dossiers import made_dossier

ANSWER = Answer(
    pattern="host-scalar-read",
    stage="implementation",
    claims=(GivenClaim(text="The host reads 3 values per step.", evidence=("count",)),),
    cause="loss.item() waits for the device.",
    fix="none",
    confidence="high",
)


def written(answer: Answer, *, with_edit: bool = False) -> str:
    fields = msgspec.to_builtins(answer)
    if not with_edit:
        del fields["edit"]
    return json.dumps(fields, separators=(",", ":"))


class Writer:
    """What constrained decoding allows of a text, byte by byte."""

    def __init__(self, schema: object) -> None:
        self._llguidance = pytest.importorskip("llguidance")
        self._tokenizer = self._llguidance.LLTokenizer("byte")
        matcher = self._llguidance.LLMatcher
        options = {"whitespace_flexible": False}
        self._grammar = matcher.grammar_from_json_schema(json.dumps(schema), defaults=options)
        is_wrong, messages = matcher.validate_grammar_with_warnings(self._grammar)
        assert not is_wrong and not messages, messages

    def takes(self, text: str) -> bool:
        matcher = self._llguidance.LLMatcher(self._tokenizer, self._grammar, log_level=0)
        tokens = self._tokenizer.tokenize_str(text)
        return (
            matcher.validate_tokens(tokens) == len(tokens) and matcher.consume_tokens(tokens) and matcher.is_accepting()
        )


def test_what_the_grammar_lets_through_is_an_answer():
    dossier = made_dossier()
    text = written(ANSWER)
    assert Writer(answer_schema(dossier)).takes(text)
    assert parse_answer(text, dossier) == ANSWER


@pytest.mark.parametrize(
    "changed",
    [
        {"pattern": "made-up"},
        {"fix": "made-up"},
        {"fix": "edit"},
        {"stage": "software"},
        {"confidence": "0.9"},
        {"cause": ""},
        {"cause": "takes １２ ms"},
        {"cause": "one\ntwo"},
        {"claims": ()},
        {"claims": ANSWER.claims * 4},
        {"claims": (GivenClaim(text="no ids", evidence=()),)},
        {"claims": (GivenClaim(text="of another", evidence=("e99",)),)},
        {"claims": (GivenClaim(text="x" * (LONGEST_CLAIM + 1), evidence=("count",)),)},
    ],
)
def test_the_grammar_allows_nothing_else(changed: dict[str, object]):
    fields = {**json.loads(written(ANSWER)), **msgspec.to_builtins(changed)}
    assert not Writer(answer_schema(made_dossier())).takes(
        json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    )


def test_every_figure_can_be_cited():
    dossier = made_dossier()
    writer = Writer(answer_schema(dossier))
    for id in ("step", "saving-pct", "c2", "waiting", "t3", "l2"):
        claim = GivenClaim(text="So it is.", evidence=(id,))
        assert writer.takes(written(msgspec.structs.replace(ANSWER, claims=(claim,)))), id


def test_an_edit_is_asked_for_only_where_there_is_a_function():
    dossier = made_dossier()
    edit = msgspec.structs.replace(ANSWER, fix="edit", edit="def f():\n    return 1\n")
    text = written(edit, with_edit=True)
    assert Writer(answer_schema(dossier, with_edit=True)).takes(text)
    assert parse_answer(text, dossier) == edit
    assert not Writer(answer_schema(replace(dossier, source=None), with_edit=True)).takes(text)


@pytest.mark.parametrize("length", [0, 1, 20, 60, len(written(ANSWER)) - 1])
def test_an_answer_that_was_cut_off_is_refused(length: int):
    with pytest.raises(AnswerError, match="no valid answer"):
        parse_answer(written(ANSWER)[:length], made_dossier())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("I think that the loop is slow.", "no valid answer"),
        ("[]", "no valid answer"),
        ("\ud800", "no valid answer"),
        ("[" * 100_000, "no valid answer"),
        (written(ANSWER).replace('"high"', '"certain"'), "certain"),
        (written(ANSWER).replace('"cause"', '"why"'), "why"),
        (written(ANSWER).replace('"host-scalar-read"', '"rm -rf"'), "not offered"),
        (written(ANSWER).replace('"none"', '"model/x"'), "not offered"),
    ],
)
def test_what_is_no_answer_is_refused_in_words(text: str, says: str):
    with pytest.raises(AnswerError, match=says):
        parse_answer(text, made_dossier())


def test_a_code_fence_is_taken_off():
    assert parse_answer(f"```json\n{written(ANSWER)}\n```\n", made_dossier()) == ANSWER
