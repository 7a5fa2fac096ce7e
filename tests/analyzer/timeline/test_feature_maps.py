"""Sizes of feature maps against what the modules really gave, and layout changes against what was really done."""

from typing import Any

import pytest

from tests.builders import TraceBuilder
from tests.patterns.recorded import record
from tests.shared import shared_timeline
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.feature_maps import feature_maps
from torchtraceap.analyzer.timeline.layout_changes import layout_changes, layout_of
from torchtraceap.analyzer.trace.model import NONE, Category

STEPS = 3


def recorded(step: Any) -> Any:
    return build_timeline(record(step, steps=STEPS))


@pytest.fixture(scope="module")
def net() -> Any:
    nn = pytest.importorskip("torch.nn")
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 12, 5, padding="same", dilation=2),
        nn.MaxPool2d(3, stride=2, padding=1),
        nn.ConvTranspose2d(12, 6, 3, stride=2, output_padding=1),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d((4, 5)),
    )


@pytest.mark.parametrize("layout", ["contiguous_format", "channels_last"])
def test_sizes_are_what_the_modules_gave(net: Any, layout: str) -> None:
    torch = pytest.importorskip("torch")
    memory_format = getattr(torch, layout)
    model = net.to(memory_format=memory_format)
    images = torch.rand(2, 3, 32, 36).contiguous(memory_format=memory_format)
    given = [images]
    with torch.no_grad():
        for layer in model:
            given.append(layer(given[-1]))

    def step() -> None:
        with torch.no_grad():
            model(images)

    found = [one for one in feature_maps(recorded(step)) if one.module]
    assert len(found) == len(model)
    for one, before, after in zip(found, given[:-1], given[1:], strict=True):
        assert one.input_shape == tuple(before.shape), one
        assert one.output_shape == tuple(after.shape), one
        assert one.output_bytes == after.numel() * after.element_size()
        assert one.inside == "Sequential_0" and one.dtype == "float"
    wanted = "NHWC" if layout == "channels_last" else "NCHW"
    assert {one.layout for one in found[:3]} == {wanted}


def test_a_map_of_unknown_output_takes_what_the_next_layer_gets() -> None:
    b = TraceBuilder(devices=())
    with b.step(0):
        b.leaf("aten::upsample_bilinear2d", shapes=((2, 8, 16, 16),), us=50)
        b.leaf("aten::relu", shapes=((2, 8, 32, 32),), us=50)
        b.leaf("aten::upsample_bilinear2d", shapes=((2, 8, 32, 32),), us=50)
        b.leaf("aten::cat", shapes=(((2, 8, 64, 64), (2, 4, 64, 64)),), us=50)
    found = feature_maps(build_timeline(b.build()))
    assert [(one.op, one.output_shape) for one in found] == [
        ("upsample_bilinear2d", (2, 8, 32, 32)),
        ("relu", (2, 8, 32, 32)),
        ("upsample_bilinear2d", ()),
    ]
    assert found[2].output_bytes == 0


def test_no_shapes_no_maps() -> None:
    b = TraceBuilder(devices=())
    with b.step(0):
        b.leaf("aten::conv2d", us=50)
    timeline = build_timeline(b.build())
    assert feature_maps(timeline) == () and layout_changes(timeline) == ()


@pytest.mark.parametrize(
    ("dims", "strides", "layout"),
    [
        ((2, 8, 4, 4), (128, 16, 4, 1), "NCHW"),
        ((2, 8, 4, 4), (128, 1, 32, 8), "NHWC"),
        ((1, 8, 3, 4, 4), (384, 1, 128, 32, 8), "NDHWC"),
        ((1, 8, 3, 4, 4), (384, 48, 16, 4, 1), "NCDHW"),
        ((2, 8, 4, 4), (128, 4, 1, 32), "other"),
        ((2, 8, 4, 4), (), ""),
        ((2, 1, 4, 4), (16, 16, 4, 1), ""),
    ],
)
def test_layouts_are_told_by_strides(dims: Any, strides: Any, layout: str) -> None:
    assert layout_of(dims, strides) == layout


def test_copies_that_change_the_layout_are_found_with_their_cause() -> None:
    torch = pytest.importorskip("torch")
    images, photo = torch.rand(4, 6, 10, 12), torch.rand(20, 30, 3)

    def to_last() -> Any:
        return images.permute(0, 2, 3, 1).contiguous()

    def step() -> None:
        last = to_last()
        last.permute(0, 3, 1, 2).contiguous()
        images.to(memory_format=torch.channels_last)
        photo.permute(2, 0, 1).contiguous()
        images.view(4, 2, 3, 120).transpose(1, 2).contiguous()
        images.clone()

    timeline = recorded(step)
    found = {(one.change, one.cause): one for one in layout_changes(timeline)}
    assert set(found) == {
        ("NCHW -> NHWC", "contiguous"),
        ("NHWC -> NCHW", "contiguous"),
        ("NCHW -> NHWC", "to"),
        ("HWC -> CHW", "contiguous"),
    }
    for one in found.values():
        assert one.count_per_step == 1 and not one.by_library
        assert len(one.rows) == len(timeline.steps.steady)
        assert one.us_per_step > 0
    assert found["NCHW -> NHWC", "contiguous"].bytes_moved == 2 * images.numel() * 4
    assert found["HWC -> CHW", "contiguous"].shape == (3, 20, 30)


@pytest.mark.parametrize("size", [(1, 1, 1, 1), (1, 1, 1), (0, 3, 4, 4)])
def test_copies_of_one_element_or_none_change_nothing(size: Any) -> None:
    torch = pytest.importorskip("torch")
    few = torch.ones(size)
    assert layout_changes(recorded(lambda: few.clone())) == ()


def test_a_convolution_that_copies_its_input_counts_as_the_library() -> None:
    torch = pytest.importorskip("torch")
    conv = torch.nn.Conv2d(4, 8, 3).to(memory_format=torch.channels_last)
    images = torch.rand(2, 4, 16, 16)

    def step() -> None:
        with torch.no_grad():
            conv(images)

    (one,) = layout_changes(recorded(step))
    assert (one.change, one.cause, one.by_library, one.module) == ("NCHW -> NHWC", "conv2d", True, "Conv2d_0")


def test_transposes_of_a_device_are_charged_to_the_forward_operator() -> None:
    timeline = shared_timeline("traces/S05_hta_resnet50_ddp_a100.json.gz")
    found = layout_changes(timeline)
    assert {one.change for one in found} == {"NCHW -> NHWC", "NHWC -> NCHW"}
    assert {one.cause for one in found} == {"conv2d", "conv2d (backward)"}
    assert sum(len(one.rows) for one in found) == 633
    assert all(timeline.trace.cat[one.anchor] == Category.CPU_OP for one in found)


def test_a_trace_of_the_device_alone_still_shows_them() -> None:
    timeline = shared_timeline("traces/S14_tracelens_resnet18_gpuonly_mi210.json.gz")
    assert feature_maps(timeline) == ()
    found = layout_changes(timeline)
    assert found and all(one.cause == "" and one.by_library for one in found)
    assert all(timeline.launches.op[one.anchor] == NONE for one in found)


def test_a_real_training_run() -> None:
    found = feature_maps(shared_timeline("traces/S11_tracelens_resnet18_ddp_ckpt_mi300.json.gz"))
    stem = next(one for one in found if one.op == "conv2d")
    assert (stem.module, stem.inside) == ("Conv2d_0", "ResNet_0")
    assert (stem.input_shape, stem.output_shape) == ((10, 3, 224, 224), (10, 64, 112, 112))
    assert stem.output_bytes == 10 * 64 * 112 * 112 * 2
    pool = next(one for one in found if one.op == "max_pool2d")
    assert pool.output_shape == (10, 64, 56, 56)
