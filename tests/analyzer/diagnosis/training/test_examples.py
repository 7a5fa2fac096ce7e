import pytest

pytest.importorskip("transformers")
pytest.importorskip("llguidance")

from tests.analyzer.diagnosis.training.tiny import BUDGET, made_pairs, tiny_tokenizer
from torchtraceap.analyzer.diagnosis.backends.json_mask import JsonMask, vocabulary_of
from torchtraceap.analyzer.diagnosis.schema import answer_schema, parse_answer
from torchtraceap.analyzer.diagnosis.training.examples import DECIDING_WEIGHT, answer_text, make_example


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def test_the_answer_is_what_decoding_by_the_schema_can_write(tokenizer):
    vocabulary = vocabulary_of(tokenizer, len(tokenizer))
    for pair in made_pairs(4):
        example = make_example(pair, tokenizer, BUDGET, 0)
        mask = JsonMask(vocabulary, answer_schema(pair.dossier))
        mask.accept(example.answer[:-1])
        assert mask.is_done
        assert parse_answer(tokenizer.decode(example.answer[:-1]), pair.dossier) == pair.answer
        assert example.answer[-1] == tokenizer.eos_token_id


def test_tokens_that_decide_weigh_more_and_those_that_only_look_so_do_not(tokenizer):
    pair = made_pairs(2)[1]
    assert answer_text(pair.answer).count("none") == 3, "pattern, fix, and a claim that quotes one"
    example = make_example(pair, tokenizer, BUDGET, 0)
    heavy = [token for token, weight in zip(example.answer, example.weights, strict=True) if weight == DECIDING_WEIGHT]
    assert tokenizer.decode(heavy).count("none") == 2
    assert len(example.weights) == len(example.answer)
    assert "ms" not in tokenizer.decode(heavy)


def test_the_order_of_the_lists_follows_the_seed(tokenizer):
    pair = made_pairs(1)[0]
    prompts = {seed: tokenizer.decode(make_example(pair, tokenizer, BUDGET, seed).prompt) for seed in range(4)}
    assert len(set(prompts.values())) > 1
    assert len({"".join(sorted(text.split())) for text in prompts.values()}) == 1
    assert make_example(pair, tokenizer, BUDGET, 3) == make_example(pair, tokenizer, BUDGET, 3)
