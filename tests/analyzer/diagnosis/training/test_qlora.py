"""The whole way for CodeLlama's sizes, on a random model of its architecture: 4 bits, training, adapter, answers."""

import pytest

pytest.importorskip("peft")
pytest.importorskip("bitsandbytes")
pytest.importorskip("llguidance")

import bitsandbytes
import torch
from safetensors.torch import load_file

from tests.analyzer.diagnosis.training.tiny import BUDGET, made_pairs, tiny_model, tiny_tokenizer
from torchtraceap.analyzer.diagnosis.backends.base import Watch
from torchtraceap.analyzer.diagnosis.backends.decoding import Decoder
from torchtraceap.analyzer.diagnosis.backends.json_mask import JsonMask, vocabulary_of
from torchtraceap.analyzer.diagnosis.backends.loading import load_adapter, load_model, load_tokenizer, nf4_config
from torchtraceap.analyzer.diagnosis.schema import answer_schema, parse_answer
from torchtraceap.analyzer.diagnosis.training.base import load_base
from torchtraceap.analyzer.diagnosis.training.examples import make_example
from torchtraceap.analyzer.diagnosis.training.lora import WEIGHTS
from torchtraceap.analyzer.diagnosis.training.train import Settings, train

PAIRS = made_pairs(8)
SETTINGS = Settings(epochs=2, rank=4, batch=2, rate=5e-2, save_every=1, threads=1, prompt_budget=BUDGET)


class Killed(Exception):
    pass


def quiet(sentence):
    assert sentence


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The base as it would lie in a model cache."""
    folder = tmp_path_factory.mktemp("codellama-tiny")
    tiny_model().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def test_nf4_trains_goes_on_and_answers(folder, tmp_path):
    base = load_base(str(folder))
    assert base.name == folder.name
    assert sum(isinstance(module, bitsandbytes.nn.Linear4bit) for module in base.model.modules()) == 2 * 7
    card = train(PAIRS, base, tmp_path / "whole", SETTINGS, quiet)
    assert card.last_loss < card.first_loss

    def killing(sentence):
        if sentence.startswith("6 of"):
            raise Killed

    with pytest.raises(Killed):
        train(PAIRS, load_base(str(folder)), tmp_path / "killed", SETTINGS, killing)
    train(PAIRS, load_base(str(folder)), tmp_path / "killed", SETTINGS, quiet, resume=True)
    whole, killed = (load_file(tmp_path / name / WEIGHTS) for name in ("whole", "killed"))
    assert whole.keys() == killed.keys()
    assert all(torch.equal(whole[name], killed[name]) for name in whole)

    model = load_adapter(load_model(folder, "cpu", nf4_config()), tmp_path / "killed")
    tokenizer = load_tokenizer(folder)
    vocabulary = vocabulary_of(tokenizer, model.config.vocab_size)
    for pair in PAIRS[-2:]:
        prompt = make_example(pair, tokenizer, BUDGET, 0).prompt
        mask = JsonMask(vocabulary, answer_schema(pair.dossier))
        written = Decoder(model, vocabulary, 512).write(prompt, mask, 2000, 0, Watch())
        assert written.is_whole
        assert parse_answer(tokenizer.decode(written.tokens), pair.dossier).pattern
