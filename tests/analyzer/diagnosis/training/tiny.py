"""A random model of CodeLlama's architecture, so small that it trains in a second, and pairs to train it with."""

from dataclasses import replace

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.analyzer.diagnosis.dossiers import made_dossier
from torchtraceap.analyzer.diagnosis.answer import Answer, GivenClaim
from torchtraceap.analyzer.diagnosis.dossier import NO_FIX, NO_PATTERN
from torchtraceap.analyzer.diagnosis.prompt import write_prompt
from torchtraceap.analyzer.diagnosis.training.base import Base
from torchtraceap.analyzer.diagnosis.training.examples import answer_text
from torchtraceap.analyzer.diagnosis.training.pairs import Pair

BUDGET = 520
_VOCABULARY = 1024


def made_pairs(count):
    """So many, every other with nothing wrong; the last fourth for the exam."""
    return [_pair(number, "exam" if number >= count - count // 4 else "train") for number in range(count)]


def _pair(number, split):
    is_healthy = number % 2 == 1
    dossier = replace(made_dossier(), bad=0.03 if is_healthy else 0.9, cost_us_per_step=1000.0 * (number + 1))
    claim = GivenClaim(text=f'It takes {number + 1} ms: "fix":"none".', evidence=("cost",))
    answer = Answer(
        pattern=NO_PATTERN if is_healthy else dossier.slug,
        stage="implementation",
        claims=(claim,),
        cause="Nothing is wrong." if is_healthy else "The host waits.",
        fix=NO_FIX if is_healthy else dossier.fixes[0].id,
        confidence="high",
    )
    return Pair(dossier, answer, split, f"family-{split}", f"run-{number}")


def tiny_tokenizer():
    """A byte-level tokenizer that knows the words of the made pairs."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


def _texts():
    for pair in made_pairs(4):
        prompt = write_prompt(pair.dossier, len, 10**6).prompt
        yield from (prompt.system, prompt.user, answer_text(pair.answer))


def tiny_model(layers=2):
    """Sides are multiples of 64, as the 4-bit kernels of a CPU want them."""
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=_VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=4096,
        initializer_range=0.2,
    )
    return LlamaForCausalLM(config).to(torch.bfloat16)


def tiny_base():
    """Fresh at every call: training puts its matrices into the model."""
    return Base("tiny", "random, bf16", tiny_model(), tiny_tokenizer(), BUDGET)
