"""The order of kinds, and which of them a model knows."""

from tests.analyzer.detector.models import save_models
from torchtraceap.analyzer.detector.kinds import in_code_order, known_kinds
from torchtraceap.analyzer.patterns.registry import all_patterns


def test_kinds_come_in_order_of_code_and_once():
    codes = [pattern.slug for pattern in all_patterns()]
    assert in_code_order([*reversed(codes), codes[0]]) == tuple(codes)


def test_kinds_without_a_rule_come_last():
    first = all_patterns()[0].slug
    assert in_code_order({"zz-unheard-of", "aa-unheard-of", first}) == (first, "aa-unheard-of", "zz-unheard-of")


def test_a_model_knows_the_kinds_of_its_card(tmp_path):
    codes = [pattern.slug for pattern in all_patterns()]
    save_models(tmp_path, kinds=(codes[9], codes[2], codes[4]))
    assert known_kinds(tmp_path) == (codes[2], codes[4], codes[9])
