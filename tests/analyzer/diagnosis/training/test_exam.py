import pytest

from tests.analyzer.diagnosis.dossiers import made_dossier
from torchtraceap.analyzer.diagnosis.answer import Answer, GivenClaim
from torchtraceap.analyzer.diagnosis.backends.base import Completion
from torchtraceap.analyzer.diagnosis.training.exam import hold_exam
from torchtraceap.analyzer.diagnosis.training.pairs import Pair

RIGHT = (
    '{"pattern":"host-scalar-read","stage":"implementation","claims":[],"cause":"x",'
    '"fix":"host-scalar-read","confidence":"high"}'
)
WRONG_FIX = RIGHT.replace('"fix":"host-scalar-read"', '"fix":"none"')
NONE = WRONG_FIX.replace('"pattern":"host-scalar-read"', '"pattern":"none"')


class Scripted:
    """Says one text after the other."""

    name = "scripted"
    prompt_budget = 2000

    def __init__(self, *texts):
        self.texts = list(texts)

    def count_tokens(self, text):
        return len(text) // 4

    def complete(self, prompt, schema, most_tokens, seed, watch):
        assert (seed, next(iter(schema["properties"]))) == (0, "pattern")
        assert "QUESTION" in prompt.user
        return Completion(self.texts.pop(0), 500, 40, 2.0, True)

    def close(self):
        self.texts.clear()


def pair(pattern, fix):
    claim = GivenClaim(text="It waits.", evidence=("cost",))
    answer = Answer(pattern=pattern, stage="implementation", claims=(claim,), cause="x", fix=fix, confidence="high")
    return Pair(made_dossier(), answer, "exam", "resnet", "run")


FAULT, HEALTHY = pair("host-scalar-read", "host-scalar-read"), pair("none", "none")


def test_shares_are_of_the_pairs_that_they_speak_of():
    told = []
    backend = Scripted(RIGHT, WRONG_FIX, NONE, "cut off {", NONE, RIGHT)
    figures = hold_exam(backend, [FAULT, FAULT, FAULT, FAULT, HEALTHY, HEALTHY], told.append)
    assert (figures.pairs, figures.json_valid) == (6, pytest.approx(5 / 6))
    assert (figures.pattern_acc, figures.none_acc, figures.fix_acc) == (0.5, 0.5, 0.25)
    assert (figures.tokens_per_answer, figures.seconds_per_answer) == (40.0, 2.0)
    assert told == ["exam: 6 of 6 pairs, 0.50 right"]


def test_nothing_is_said_of_what_was_not_asked():
    figures = hold_exam(Scripted(NONE), [HEALTHY], lambda sentence: None)
    assert (figures.pattern_acc, figures.none_acc, figures.fix_acc) == (None, 1.0, None)
    with pytest.raises(ValueError, match="'exam'"):
        hold_exam(Scripted(), [], lambda sentence: None)
