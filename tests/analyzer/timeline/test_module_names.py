"""Names of modules by the recording run's tags, or by class and number."""

from __future__ import annotations

import pytest

from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.module_names import innermost_modules, tagged_path

from ...builders import TraceBuilder, row_of


@pytest.mark.parametrize("is_tagged", [True, False])
def test_a_tag_names_the_module_whose_call_it_lies_in(is_tagged: bool) -> None:
    b = TraceBuilder(devices=())
    with b.step(0), b.frame("nn.Module: Net_0"), b.frame("nn.Module: Block_3"):
        if is_tagged:
            block, conv = (f"torchtraceap.module {path} model.py:34" for path in ("layer1.0", "layer1.0.conv1"))
            with b.annotation(block), b.frame("nn.Module: Conv2d_7"), b.annotation(conv):
                handle = b.leaf("aten::conv2d")
        else:
            with b.frame("nn.Module: Conv2d_7"):
                handle = b.leaf("aten::conv2d")
    trace = b.build()
    found = innermost_modules(build_timeline(trace), row_of(trace, handle))
    assert found == (("layer1.0.conv1", "layer1.0") if is_tagged else ("Conv2d_7", "Block_3"))


def test_other_ranges_name_no_module() -> None:
    assert tagged_path("torchtraceap.module layer1 model.py:3") == "layer1"
    assert tagged_path("torchtraceap.module ") == tagged_path("my.module layer1") == ""
    b = TraceBuilder(devices=())
    with b.step(0), b.annotation("encode"):
        handle = b.leaf("aten::conv2d")
    trace = b.build()
    assert innermost_modules(build_timeline(trace), row_of(trace, handle)) == ("", "")
