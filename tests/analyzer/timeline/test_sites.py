"""Events of one place of the program stay together, those of others apart."""

import numpy as np

from tests.builders import TraceBuilder, row_of
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.sites import SiteFinder, group_by_site, is_library_frame, without_identity
from torchtraceap.analyzer.trace.model import NONE


def groups_of(b: TraceBuilder, handles: list[int]) -> list[list[int]]:
    trace = b.build()
    rows = np.array([row_of(trace, handle) for handle in handles])
    found = group_by_site(build_timeline(trace), rows)
    return [[int(trace.file_index[row]) for row in group] for group in found]


def test_instances_of_one_layer_are_one_site():
    b, handles = TraceBuilder(), []
    with b.frame("train.py(9): main"):
        for number in range(3):
            call = f"<built-in method matmul of type object at 0x7f0{number}>"
            with b.frame(f"nn.Module: Mixer_{number}"), b.frame("model.py(14): forward"), b.frame(call):
                handles.append(b.leaf("aten::matmul"))
    assert groups_of(b, handles) == [handles]


def test_two_functions_are_two_sites():
    b, handles = TraceBuilder(), []
    for name in ("model.py(14): forward", "loss.py(3): criterion"):
        with b.frame(name):
            handles.append(b.leaf("aten::matmul"))
    assert groups_of(b, handles) == [[handles[0]], [handles[1]]]


def test_library_frames_below_the_users_function_count():
    b, handles = TraceBuilder(), []
    with b.frame("train.py(9): main"):
        for frame in ("torch/nn/functional.py(1): softmax", "torch/nn/functional.py(9): linear"):
            with b.frame(frame):
                handles.append(b.leaf("aten::copy_"))
    assert groups_of(b, handles) == [[handles[0]], [handles[1]]]


def test_recorded_stacks_serve_where_there_are_no_frames():
    b = TraceBuilder()
    stack = "torch/nn/modules/module.py(889): _call_impl;net.py({}): forward;main.py(3): <module>"
    handles = [b.leaf("aten::relu", stack=stack.format(line)) for line in (7, 7, 9)]
    assert groups_of(b, handles) == [handles[:2], handles[2:]]


def test_operators_and_annotations_serve_without_any_stack():
    b, handles = TraceBuilder(), []
    for tag in ("decode", "encode", "decode"):
        with b.annotation(tag), b.op("aten::to"):
            handles.append(b.leaf("aten::copy_"))
    assert groups_of(b, handles) == [[handles[0], handles[2]], [handles[1]]]


def test_function_is_one_execution():
    b, handles = TraceBuilder(), []
    for _ in range(2):
        with b.frame("net.py(5): forward") as frame, b.frame("torch/functional.py(1): einsum"):
            handles.append((frame, b.leaf("aten::einsum")))
    outside = b.leaf("aten::relu")
    trace = b.build()
    finder = SiteFinder(build_timeline(trace))
    for frame, leaf in handles:
        assert finder.function(row_of(trace, leaf)) == row_of(trace, frame)
    assert finder.function(row_of(trace, outside)) == NONE


def test_names_of_frames():
    assert without_identity("nn.Module: Conv2d_12") == "nn.Module: Conv2d"
    assert without_identity("<built-in method item of Tensor object at 0x7f80>") == "<built-in method item of Tensor>"
    assert is_library_frame("torch/nn/modules/conv.py(458): forward")
    assert is_library_frame("/opt/venv/lib/python3.11/site-packages/torch/functional.py(3): einsum")
    assert not is_library_frame("/home/me/torch_models/net.py(3): forward")
    assert not is_library_frame("transformers/models/vit/modeling_vit.py(3): forward")
