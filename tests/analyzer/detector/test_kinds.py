"""The order of kinds."""

from torchtraceap.analyzer.detector.kinds import in_code_order
from torchtraceap.analyzer.patterns.registry import all_patterns


def test_kinds_come_in_order_of_code_and_once():
    codes = [pattern.slug for pattern in all_patterns()]
    assert in_code_order([*reversed(codes), codes[0]]) == tuple(codes)


def test_kinds_without_a_rule_come_last():
    first = all_patterns()[0].slug
    assert in_code_order({"zz-unheard-of", "aa-unheard-of", first}) == (first, "aa-unheard-of", "zz-unheard-of")
