"""FLOPs and bytes of operators."""

from pathlib import Path

import numpy as np
import pytest

from tests.builders import TraceBuilder, row_of
from tests.shared import shared_timeline
from torchtraceap.analyzer.timeline.convolution_costs import ShapeHints
from torchtraceap.analyzer.timeline.cost_rules import cost_of
from torchtraceap.analyzer.timeline.costs import op_costs
from torchtraceap.analyzer.trace.model import OpInputs
from torchtraceap.analyzer.trace.read import read_trace

NO_HINTS = ShapeHints({})


def flops_of(name: str, dims: tuple, concrete: tuple[str, ...] = (), types: tuple[str, ...] = ("float",) * 3) -> float:
    cost = cost_of(name, OpInputs(dims=dims, types=types, concrete=concrete), NO_HINTS)
    assert cost is not None
    return cost.flops


@pytest.mark.parametrize(
    ("name", "dims", "concrete", "multiply_adds"),
    [
        ("aten::mm", ((4, 5), (5, 6)), (), 4 * 5 * 6),
        ("aten::bmm", ((2, 4, 5), (2, 5, 6)), (), 2 * 4 * 5 * 6),
        ("aten::addmm", ((6,), (4, 5), (5, 6)), (), 4 * 5 * 6),
        ("aten::baddbmm", ((1,), (2, 4, 5), (2, 5, 6)), (), 2 * 4 * 5 * 6),
        ("aten::linear", ((3, 4, 5), (6, 5), (6,)), (), 3 * 4 * 5 * 6),
        ("aten::mv", ((4, 5), (5,)), (), 4 * 5),
        (
            "aten::convolution",
            ((2, 8, 10, 12), (16, 8, 3, 3), ()),
            ("", "", "", "[2, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"),
            (2 * 16 * 5 * 12) * 8 * 9,
        ),
        (
            "aten::cudnn_convolution",  # padding before stride; groups of 4 channels
            ((2, 8, 10, 10), (16, 4, 3, 3), (), (), (), ()),
            ("", "", "[2, 2]", "[1, 1]", "[2, 2]", "2"),
            (2 * 16 * 10 * 10) * 4 * 9,
        ),
        (
            "aten::conv_transpose2d",
            ((2, 8, 10, 10), (8, 16, 2, 2), ()),
            ("", "", "", "[2, 2]", "[0, 0]", "[0, 0]", "1", "[1, 1]"),
            (2 * 8 * 10 * 10) * 16 * 4,
        ),
        (
            "aten::scaled_dot_product_attention",
            ((2, 3, 10, 8), (2, 3, 12, 8), (2, 3, 12, 8)),
            (),
            2 * 3 * 10 * 12 * (8 + 8),
        ),
        (
            "aten::_flash_attention_forward",  # (batch, length, heads, width)
            ((2, 10, 3, 8), (2, 12, 3, 8), (2, 12, 3, 8)),
            (),
            2 * 3 * 10 * 12 * (8 + 8),
        ),
    ],
)
def test_matrix_work(name: str, dims: tuple, concrete: tuple[str, ...], multiply_adds: int) -> None:
    assert flops_of(name, dims, concrete) == 2 * multiply_adds


@pytest.mark.parametrize(
    ("mask", "products"), [("[True, True, False]", 2), ("[False, True, True]", 1), ("[True, False, False]", 1)]
)
def test_convolution_backward_counts_the_gradients_asked_for(mask: str, products: int) -> None:
    dims = ((2, 16, 10, 10), (2, 8, 10, 10), (16, 8, 3, 3))
    concrete = ("", "", "", "[0]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", mask)
    assert flops_of("aten::convolution_backward", dims, concrete) == products * 2 * (2 * 16 * 100) * 8 * 9


def test_bytes_follow_the_types() -> None:
    half = cost_of("aten::mm", OpInputs(((4, 5), (5, 6)), types=("c10::Half", "c10::Half")), NO_HINTS)
    assert half is not None and half.bytes == 2 * (20 + 30 + 24)
    fill = cost_of("aten::fill_", OpInputs(((100,), ()), types=("double", "Scalar")), NO_HINTS)
    assert fill is not None and (fill.flops, fill.bytes) == (0, 800)
    cat = cost_of("aten::cat", OpInputs((((2, 3), (4, 3)), ()), types=("TensorList", "Scalar")), NO_HINTS)
    assert cat is not None and cat.bytes == 2 * 4 * (6 + 12)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("aten::view", OpInputs(((2, 3),))),
        ("aten::mm", OpInputs()),
        ("aten::mm", OpInputs(((3,), ()))),
        ("aten::convolution", OpInputs(((2, 8, 10, 10), (16, 8, 3, 3)))),
        ("aten::convolution", OpInputs(((2, 8, 10, 10), (16, 8, 3, 3)), concrete=("", "", "", "[0, 0]", "[1, 1]"))),
        ("aten::convolution", OpInputs(((2, 8, 4, 4), (16, 8, 9, 9)), concrete=("", "", "", "[1]", "[0]", "[1]"))),
        ("aten::convolution", OpInputs(((2, 8, 4, 4), (16, 8, 3, 3)), concrete=("", "", "", "[s0, 1]", "same"))),
    ],
)
def test_nothing_is_made_up(name: str, inputs: OpInputs) -> None:
    assert cost_of(name, inputs, NO_HINTS) is None


def test_nested_operators_count_once() -> None:
    builder = TraceBuilder()
    dims = ((8, 32), (16, 32), (16,))
    with (
        builder.op("aten::linear", shapes=dims, types=("float",) * 3) as outer,
        builder.op("aten::addmm", shapes=((16,), (8, 32), (32, 16)), types=("float",) * 3) as inner,
    ):
        pass
    with (
        builder.op("aten::convolution_backward", shapes=((1, 4, 8, 8), (1, 2, 8, 8), (4, 2, 3, 3))) as backward,
        builder.op("aten::sum", shapes=((1, 4, 8, 8),)) as bias_sum,
    ):
        pass
    trace = builder.build()
    costs = op_costs(trace)
    assert np.isnan(costs.flops[row_of(trace, outer)])
    assert costs.flops[row_of(trace, inner)] == 2 * 8 * 16 * 32
    assert costs.flops[row_of(trace, backward)] == 2 * 2 * (4 * 64) * 2 * 9
    assert costs.flops[row_of(trace, bias_sum)] == 256


def test_backward_tells_the_output_size_that_old_traces_lack() -> None:
    builder = TraceBuilder()
    forward = builder.leaf("aten::cudnn_convolution", shapes=((2, 8, 10, 10), (16, 8, 3, 3)))
    builder.leaf("aten::cudnn_convolution_backward", shapes=((2, 8, 10, 10), (2, 16, 5, 5), (16, 8, 3, 3)))
    trace = builder.build()
    assert op_costs(trace).flops[row_of(trace, forward)] == 2 * (2 * 16 * 25) * 8 * 9


def test_resnet50_training_step_costs_three_forward_passes() -> None:
    """A ResNet-50 forward takes 4.09 G multiply-adds an image of 224 x 224; 32 images, 6 steps, backward twice."""
    costs = shared_timeline("traces/S01_kineto_resnet50_w0_v100.json.gz").costs
    assert np.nansum(costs.flops) == pytest.approx(2 * 4.09e9 * 32 * 6 * 3, rel=0.03)


def test_agrees_with_flop_counter_of_torch(tmp_path: Path) -> None:
    """A recording of real operators, forward and backward, costs what PyTorch's own counter says.

    Grouped convolutions and attention are left out: the counter takes the weight gradient of a grouped convolution
    for a dense one, and does not know the CPU's fused attention.
    """
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile
    from torch.utils.flop_counter import FlopCounterMode

    model = torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 3, stride=2, padding=1),
        torch.nn.Conv2d(8, 8, 3, padding=2, dilation=2),
        torch.nn.ConvTranspose2d(8, 6, 2, stride=2),
        torch.nn.Flatten(2),
        torch.nn.Linear(256, 32),
    )
    x = torch.randn(2, 4, 16, 16, requires_grad=True)

    def run() -> None:
        y = model(x)
        (y @ y.mT).sum().backward()

    with FlopCounterMode(display=False) as counter:
        run()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
        run()
    recording.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = read_trace(tmp_path / "trace.json")
    costs = op_costs(trace)
    matrix = [r for r in range(len(trace)) if costs.flops[r] > 0 and _is_matrix(trace.name_of(r))]
    assert costs.flops[matrix].sum() == pytest.approx(counter.get_total_flops(), rel=0.02)


def _is_matrix(name: str) -> bool:
    return any(word in name for word in ("mm", "conv"))
