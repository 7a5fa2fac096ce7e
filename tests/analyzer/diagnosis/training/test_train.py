import pytest

pytest.importorskip("peft")
pytest.importorskip("bitsandbytes")

import torch
from safetensors.torch import load_file

from tests.analyzer.diagnosis.training.tiny import BUDGET, made_pairs, tiny_base, tiny_model, tiny_tokenizer
from torchtraceap.analyzer.diagnosis.backends.loading import load_adapter
from torchtraceap.analyzer.diagnosis.training import train as training
from torchtraceap.analyzer.diagnosis.training.card import CARD, LOSSES, read_card
from torchtraceap.analyzer.diagnosis.training.checkpoint import CHECKPOINT, CheckpointError
from torchtraceap.analyzer.diagnosis.training.examples import Example, make_example
from torchtraceap.analyzer.diagnosis.training.fit import answer_loss
from torchtraceap.analyzer.diagnosis.training.lora import WEIGHTS, add_lora, learned
from torchtraceap.analyzer.diagnosis.training.train import Settings, train

PAIRS = made_pairs(16)
SETTINGS = Settings(epochs=2, rank=4, batch=4, rate=5e-2, save_every=1, threads=1)


class Killed(Exception):
    pass


def quiet(sentence):
    assert sentence


def adapter(folder):
    return load_file(folder / WEIGHTS)


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("adapter")
    return out, train(PAIRS, tiny_base(), out, SETTINGS, quiet)


def test_it_learns_and_leaves_adapter_curve_and_card(trained):
    out, card = trained
    assert card.last_loss < 0.8 * card.first_loss
    assert card == read_card(out)
    assert (card.updates, card.pairs_learned, card.learned.pairs, card.learned.exam_pairs) == (6, 24, 12, 4)
    assert len((out / LOSSES).read_text().splitlines()) == 1 + card.updates
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [WEIGHTS, "adapter_config.json", CARD, "README.md", LOSSES]
    )


def test_the_adapter_makes_another_model_as_good(trained):
    out, _ = trained
    example = make_example(PAIRS[0], tiny_tokenizer(), BUDGET, 0)
    with torch.no_grad():
        before = answer_loss(tiny_model(), example)
        after = answer_loss(load_adapter(tiny_model(), out), example)
    assert after < 0.9 * before


def test_the_same_seed_gives_the_same_adapter_and_another_another(trained, tmp_path):
    out, _ = trained
    train(PAIRS, tiny_base(), tmp_path / "same", SETTINGS, quiet)
    assert same(adapter(out), adapter(tmp_path / "same"))
    train(PAIRS, tiny_base(), tmp_path / "other", Settings(epochs=1, rank=4, seed=1, threads=1), quiet)
    assert not same(adapter(out), adapter(tmp_path / "other"))


def test_more_threads_give_the_same_adapter(trained, tmp_path):
    out, _ = trained
    settings = training.replace(SETTINGS, threads=3)
    train(PAIRS, tiny_base(), tmp_path, settings, quiet)
    assert same(adapter(out), adapter(tmp_path))


@pytest.mark.parametrize("updates", [1, 4])
def test_a_killed_training_goes_on_to_the_same_adapter(trained, tmp_path, updates):
    out, card = trained

    def killing(sentence):
        if sentence.startswith(f"{updates * SETTINGS.batch} of"):
            raise Killed

    with pytest.raises(Killed):
        train(PAIRS, tiny_base(), tmp_path, SETTINGS, killing)
    assert (tmp_path / CHECKPOINT).exists()
    resumed = train(PAIRS, tiny_base(), tmp_path, SETTINGS, quiet, resume=True)
    assert same(adapter(out), adapter(tmp_path))
    assert (resumed.updates, resumed.last_loss) == (card.updates, card.last_loss)


def test_only_the_same_training_may_go_on(tmp_path):
    def killing(sentence):
        if " of " in sentence:
            raise Killed

    with pytest.raises(CheckpointError, match="no checkpoint"):
        train(PAIRS, tiny_base(), tmp_path, SETTINGS, quiet, resume=True)
    with pytest.raises(Killed):
        train(PAIRS, tiny_base(), tmp_path, SETTINGS, killing)
    with pytest.raises(CheckpointError, match="other pairs"):
        train(PAIRS[1:], tiny_base(), tmp_path, SETTINGS, quiet, resume=True)
    (tmp_path / CHECKPOINT).write_bytes((tmp_path / CHECKPOINT).read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="damaged"):
        train(PAIRS, tiny_base(), tmp_path, SETTINGS, quiet, resume=True)


def test_the_time_limit_ends_it_with_a_whole_adapter(tmp_path, monkeypatch):
    now = iter(range(0, 10_000, 10))
    monkeypatch.setattr("torchtraceap.analyzer.diagnosis.training.fit.time.monotonic", lambda: next(now))
    card = train(PAIRS, tiny_base(), tmp_path, training.replace(SETTINGS, minutes=0.7), quiet)
    assert 0 < card.pairs_learned < 24
    assert card.updates == len((tmp_path / LOSSES).read_text().splitlines()) - 1
    assert adapter(tmp_path)


def test_nothing_to_learn_from_is_said(tmp_path):
    exam_only = [pair for pair in PAIRS if pair.split == "exam"]
    with pytest.raises(ValueError, match="split 'train'"):
        train(exam_only, tiny_base(), tmp_path, SETTINGS, quiet)


def test_only_the_answer_is_learned():
    model = tiny_model()
    example = make_example(PAIRS[0], tiny_tokenizer(), BUDGET, 0)
    embedded = model.get_input_embeddings().weight
    (gradient,) = torch.autograd.grad(answer_loss(model, example), model.lm_head.weight)
    ids = torch.tensor([(*example.prompt, *example.answer)])
    logits = model(input_ids=ids).logits[0].float()
    losses = torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:], reduction="none")[-len(example.answer) :]
    weights = torch.tensor(example.weights)
    (expected,) = torch.autograd.grad((losses * weights).sum() / weights.sum(), model.lm_head.weight)
    assert embedded is not model.lm_head.weight
    torch.testing.assert_close(gradient, expected, rtol=0.05, atol=1e-4)


def test_tokens_without_weight_teach_nothing():
    model = tiny_model()
    one = Example((5, 6, 7), (8, 9, 10), (1.0, 0.0, 1.0))
    without = Example((5, 6, 7), (8, 9), (1.0, 0.0))
    alone = Example((5, 6, 7), (8,), (1.0,))
    torch.testing.assert_close(answer_loss(model, without), answer_loss(model, alone), rtol=0.01, atol=0.0)
    assert answer_loss(model, one) != answer_loss(model, alone)


def test_only_the_upper_layers_learn():
    model = add_lora(tiny_model(layers=4), rank=2, layers=1, seed=0)
    names = [name for name, _ in learned(model)]
    assert names and all(".layers.3." in name for name in names)
    assert len(names) == 14
